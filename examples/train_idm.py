"""Train an inverse-dynamics model: which 16 actions lie between two frames of all cameras?

    python examples/train_idm.py sample/aloha3cam
    torchrun --nproc-per-node 2 examples/train_idm.py /data/my_dataset --steps 20000 --workers 4

A checkpoint is written every --save-every steps, and when the process is told to stop (SIGTERM, as
SLURM sends before a job's time is up, or Ctrl-C). Started again, it goes on from there, in the
middle of an epoch: no sample is seen twice or missed.
"""

import argparse
import itertools
import json
import os
import signal
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

import reelseek
from reelseek.bench import siglip_encoder
from reelseek.preprocess import IdmTransform, normalize

HORIZON = 16
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


class InverseDynamics(nn.Module):
    """(B, V, 3, 224, 224) pictures to (B, T, D) actions; V is two frames of every camera."""

    def __init__(self, encoder, num_views, action_dim):
        super().__init__()
        self.encoder = encoder
        width = num_views * encoder.config.hidden_size
        outputs = nn.Linear(256, HORIZON * action_dim)
        self.head = nn.Sequential(nn.Linear(width, 256), nn.GELU(), outputs)

    def forward(self, pixels):
        features = self.encoder(pixel_values=pixels.flatten(0, 1)).pooler_output
        actions = self.head(features.unflatten(0, pixels.shape[:2]).flatten(1))
        return actions.unflatten(1, (HORIZON, -1))


class Pictures:
    """The model's input from a batch, on the batch's device: crop, resize, jitter, normalise."""

    def __init__(self, cameras, seed, rank, augment):
        self.cameras, self.seed, self.rank, self.augment = cameras, seed, rank, augment
        self.transform = IdmTransform()

    def __call__(self, batch, step, device):
        draws = None
        if self.augment:
            # Chance depends on the step alone, so that a resumed run draws what it would have.
            generator = torch.Generator().manual_seed((self.seed + step) * 1000 + self.rank)
            draws = self.transform.draw(len(batch["action"]), generator)
        frames = [batch[camera].to(device, non_blocking=True) for camera in self.cameras]
        return normalize(torch.cat([self.transform(view, draws) for view in frames], dim=1))


def main():
    """Train, from the last checkpoint on where there is one."""
    args = arguments()
    rank, device = join_the_other_processes()
    torch.manual_seed(args.seed)
    deltas = {"observation.images.*": [0, HORIZON], "action": range(HORIZON)}
    dataset = reelseek.open_dataset(args.dataset, delta_indices=deltas, cameras=args.cameras)
    mean, std = (values.to(device) for values in action_statistics(args.dataset))
    loader = reelseek.make_loader(
        dataset, args.batch_size, num_workers=args.workers, seed=args.seed, uneven="drop"
    )
    model = InverseDynamics(siglip_encoder(args.encoder), 2 * len(dataset.cameras), len(mean))
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    step = load_checkpoint(args.checkpoint, model, optimizer, loader)
    trained = nn.parallel.DistributedDataParallel(model) if dist.is_initialized() else model
    pictures = Pictures(dataset.cameras, args.seed, rank, args.augment)
    record = open_record(args.record, rank)
    is_told_to_stop = listen_for_signals()

    started, first = time.perf_counter(), step
    for batch in itertools.islice(endless(loader), max(0, args.steps - step)):
        pixels = pictures(batch, step, device)
        actions = (batch["action"].to(device) - mean) / std
        is_real = ~batch["action_is_pad"].to(device)
        loss = (trained(pixels) - actions)[is_real].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        record(step, loss.item(), batch["index"].tolist())
        if rank == 0 and (step % args.log_every == 0 or step == args.steps):
            rate = (step - first) / (time.perf_counter() - started)
            print(f"step {step}: loss {loss.item():.3f}, {rate:.2f} it/s", flush=True)
        stops = agreed(is_told_to_stop(), device)
        if rank == 0 and (stops or step == args.steps or step % args.save_every == 0):
            save_checkpoint(args.checkpoint, step, model, optimizer, loader)
        if stops:
            break
    if rank == 0:
        print(f"{'stopped' if step < args.steps else 'done'} after step {step}", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()


def join_the_other_processes():
    """This process's number and device; torchrun says how many there are."""
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if on_gpu else "cpu"
    if on_gpu:
        torch.cuda.set_device(device)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("nccl" if on_gpu else "gloo")
    return (dist.get_rank() if dist.is_initialized() else 0), device


def action_statistics(root, rows=10_000):
    """Mean and deviation of the actions; without cameras nothing is decoded."""
    values = reelseek.open_dataset(root, cameras=())
    actions = values.get_batch(range(0, len(values), 1 + len(values) // rows))["action"]
    return actions.mean(dim=0), actions.std(dim=0).clamp(min=1e-3)


def save_checkpoint(folder, step, model, optimizer, loader):
    """Write beside, then rename: a crash leaves the checkpoint before."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    state["loader"] = loader.state_dict()  # the same for all ranks: they take batches in step
    torch.save(state, folder / "last.part")
    (folder / "last.part").replace(folder / "last.pt")


def load_checkpoint(folder, model, optimizer, loader):
    """The step to go on from; 0 where there is no checkpoint."""
    if not (folder / "last.pt").exists():
        return 0
    state = torch.load(folder / "last.pt", map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    loader.load_state_dict(state["loader"])
    return state["step"]


def endless(loader):
    """Epoch after epoch; the workers leave signals to this process, which ends its step first."""
    while True:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        batches = iter(loader)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        yield from batches


def listen_for_signals():
    """A function that says whether this process was told to stop."""
    received = []
    for wanted in STOP_SIGNALS:
        signal.signal(wanted, lambda number, _frame: received.append(number))
    return lambda: bool(received)


def agreed(stops, device):
    """True where any process was told to stop: all end after the same step."""
    if not dist.is_initialized():
        return stops
    flag = torch.tensor(float(stops), device=device)
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag)


def open_record(path, rank):
    """A function that notes a step's loss and samples, in a file for each process."""
    file = None if path is None else open(f"{path}.{rank}", "a", buffering=1)
    fields = ("step", "loss", "samples")
    return lambda *facts: file and print(json.dumps(dict(zip(fields, facts))), file=file)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", help="the folder of a LeRobot or GR00T dataset")
    parser.add_argument("--cameras", nargs="+", help="keys or patterns; all where none is given")
    parser.add_argument("--checkpoint", type=Path, default=Path("out/train_idm"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=4, help="of each process")
    parser.add_argument("--workers", type=int, default=1, help="of each process")
    parser.add_argument("--encoder", default="tiny", help="tiny, small, base or so400m")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--no-augment", dest="augment", action="store_false")
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--record", help="note each step's loss and samples in RECORD.<rank>")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
