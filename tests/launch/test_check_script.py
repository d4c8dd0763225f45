"""``reelseek slurm check``: a good script made bad in just one way, and nothing else reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reelseek.errors import LaunchError
from reelseek.launch._batch_script import batch_script
from reelseek.launch._check_script import check_script, check_text
from reelseek.launch._exports import _NVIDIA_LINES
from reelseek.launch._problems import CODES, Severity
from reelseek.launch._shell_script import read_script
from reelseek.launch._starts import LD, starts
from tests.cli.conftest import Run
from tests.conftest import REPOSITORY, needs
from tests.launch.jobs import many_jobs

SRUN = "srun --export=ALL torchrun"
OPTIONS = '--nnodes=2 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint="$head:29500"'
START = f"{SRUN} {OPTIONS} train.py\n"
GOOD = (
    """\
#!/bin/bash
#SBATCH --job-name=idm
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:h100:8
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
set -euo pipefail
module load cuda
ENV=@ENV@
PY=$("$ENV/bin/python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
LDP="$ENV/lib"
for d in "$ENV/lib/$PY/site-packages"/nvidia/*/lib; do
    LDP="$LDP:$d"
done
export LD_LIBRARY_PATH="$LDP${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
"""
    + START
)
EXPORT = 'export LD_LIBRARY_PATH="$LDP${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n'
OLD = "export LD_LIBRARY_PATH=$LDP:$LD_LIBRARY_PATH\n"
RUN = f"torchrun {OPTIONS} train.py".replace('"', "")
TAIL = GOOD[GOOD.index(EXPORT) :]


@pytest.fixture(autouse=True)
def _needs() -> None:
    needs("tree_sitter_bash")


@pytest.fixture
def env(tmp_path: Path) -> Path:
    """An environment's folder of Python 3.10."""
    (tmp_path / "env" / "lib" / "python3.10" / "site-packages").mkdir(parents=True)
    return tmp_path / "env"


def codes(text: str) -> list[str]:
    return [problem.code for problem in check_text(text)]


BAD = [
    ("no-shebang", "#!/bin/bash\n", "\n"),
    ("sbatch-after-command", "set -euo", "hostname\n#SBATCH --time=1:00:00\nset -euo"),
    ("export-after-start", TAIL, TAIL.removeprefix(EXPORT) + EXPORT),
    ("export-after-start", TAIL,
     f"{TAIL.removeprefix(EXPORT)}{EXPORT}date\nx=$(nproc)\npython -V\n"),
    ("export-after-start", TAIL,
     f"uv run python train.py\n{EXPORT}"),
    ("export-after-start", TAIL,
     f"conda run -n x python train.py\n{EXPORT}"),
    ("set-inside-python", START,
     f"python -c 'import os; os.environ[\"LD_LIBRARY_PATH\"] = \"/x\"; import torch'\n{START}"),
    ("set-inside-python", START,
     f"{START}python - <<EOF\nimport os\nos.environ.setdefault('LD_LIBRARY_PATH', '/x')\nEOF\n"),
    ("not-exported", EXPORT, EXPORT.removeprefix("export ")),
    ("export-in-subshell", EXPORT, f"( {EXPORT} )\n"),
    ("export-in-subshell", EXPORT, f"ls | while read -r d; do {EXPORT} done\n"),
    ("export-in-subshell", EXPORT, f"bash <<'EOF'\n{EXPORT}EOF\n"),
    ("export-in-subshell", EXPORT, "bash -c 'export LD_LIBRARY_PATH=/usr/lib'\n"),
    ("python-version-in-path", 'LDP="$ENV/lib"',
     'LDP="$ENV/lib:$ENV/lib/python3.12/site-packages/nvidia/npp/lib"'),
    ("python-version-in-path", '"$ENV/lib/$PY/site', '"$ENV/lib/python3.12/site'),
    ("unset-variable", "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", ":$LD_LIBRARY_PATH"),
    ("unset-variable", "ENV=", "[ -n \"$LD_LIBRARY_PATH\" ]\nENV="),
    ("order", EXPORT, "export LD_LIBRARY_PATH=/usr/lib:$ENV/lib\n"),
    ("order", EXPORT, "export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$ENV/lib\n"),
    ("srun-export", f"#SBATCH --requeue\n#!{SRUN}", ""),
    ("srun-export", SRUN, "srun --export=NONE torchrun"),
    ("srun-export", SRUN, "srun --export=PATH,HOME torchrun"),
    ("srun-export", SRUN, "srun \\\n  --export NONE \\\n  torchrun"),
    ("conda-hook", "ENV=", "conda activate gr00t\nENV="),
    ("no-rendezvous", ' --rdzv-endpoint="$head:29500"', ""),
    ("no-rendezvous", '--rdzv-endpoint="$head:29500"', "--standalone"),
    ("no-rendezvous", "--rdzv-backend=c10d ", ""),
    ("no-rendezvous", "--rdzv-backend=c10d", "--rdzv_backend=static"),
    ("no-rendezvous", '--rdzv-backend=c10d --rdzv-endpoint="$head:29500"', "--master-addr=$head"),
    ("no-rendezvous", '--rdzv-backend=c10d --rdzv-endpoint="$head:29500"',
     "--master-addr=$head --node_rank=$SLURM_NODEID"),
    ("no-rendezvous", '--rdzv-backend=c10d --rdzv-endpoint="$head:29500"', "\\\n  --standalone"),
    ("torchrun-not-in-srun", SRUN, "torchrun"),
    ("torchrun-too-often", "--ntasks-per-node=1", "--ntasks-per-node=8"),
    ("nnodes-differs", "--nnodes=2", "--nnodes 4"),
    ("nnodes-differs", "--nnodes=2 ", ""),
    ("nnodes-differs", "torchrun --nnodes=2 ", "torchrun \\\n  --nnodes=4 \\\n  "),
    ("nproc-differs", "--nproc-per-node=8", "--nproc_per_node=4"),
    ("nproc-differs", "--nproc-per-node=8 ", ""),
    ("nproc-differs", "--nproc-per-node=8 ", "\\\n  --nproc-per-node=4 \\\n  "),
    ("nproc-differs", "torchrun --nnodes=2 --nproc-per-node=8 ", "\\\n torchrun --nnodes=2 \\\n "),
    ("folder-missing", 'LDP="$ENV/lib"', 'LDP="$ENV/lib:/opt/no/such"'),
    ("module-after-export", EXPORT, f"{EXPORT}module load gcc\n"),
    ("module-after-export", EXPORT, f"{EXPORT}ml gcc\n"),
    ("python-version-written-in", '"$ENV/lib/$PY/site', '"/data/elsewhere/lib/python3.12/site'),
    ("no-requeue", "#SBATCH --requeue\n", ""),
    ("no-signal", "#SBATCH --signal=B:USR1@120\n", ""),
    ("not-understood", "set -euo", "for in do ((\nset -euo"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "good", "bad"), BAD)
def test_script_made_bad_in_one_way_is_found_with_its_code(
    code: str, good: str, bad: str, env: Path
) -> None:
    text = GOOD.replace("@ENV@", str(env))
    if good.startswith("#SBATCH --requeue\n#!"):
        made = text.replace("#SBATCH --requeue", "#SBATCH --requeue --export=NONE").replace(
            SRUN, "srun torchrun"
        )
    else:
        assert good in text
        made = text.replace(good, bad)
    assert set(codes(made)) == {code}, check_text(made)


def test_every_code_is_shown_by_a_script() -> None:
    elsewhere = {"dos-line-breaks", "set-outside", "conda-missing"}
    assert {code for code, _good, _bad in BAD} | elsewhere == CODES.keys()


def test_windows_line_breaks_are_found(env: Path) -> None:
    assert "dos-line-breaks" in codes(GOOD.replace("@ENV@", str(env)).replace("\n", "\r\n"))


def test_variable_that_is_set_outside_is_found() -> None:
    text = GOOD.replace("@ENV@", '"$CONDA_PREFIX"')
    assert codes(text) == ["conda-missing"]
    assert "set-outside" in codes(text.replace("--requeue", "--requeue --export=NONE"))
    hooked = text.replace("ENV=", 'eval "$(conda shell.bash hook)"\nconda activate x\nENV=')
    assert codes(hooked) == []


def test_good_script_has_nothing_wrong(env: Path) -> None:
    assert codes(GOOD.replace("@ENV@", str(env))) == []


@pytest.mark.parametrize(
    ("good", "also_good"),
    [
        (EXPORT, "export LD_LIBRARY_PATH=$ENV/lib\nexport LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr\n"),
        (EXPORT, 'LD_LIBRARY_PATH="$LDP"\nexport LD_LIBRARY_PATH\n'),
        (EXPORT, f"set +u\n{EXPORT}set -u\n"),
        (EXPORT, f'declare -x LD_LIBRARY_PATH="$LDP"\npython -V\n{START}'),
        (EXPORT, 'export "LD_LIBRARY_PATH=$LDP"\n'),
        (EXPORT + "head", f"fix() {{\n{EXPORT}}}\nfix\nhead"),
        (EXPORT, f"{START}{EXPORT}"),  # a first program that needs none of it
        (TAIL, f"python prepare.py\n{EXPORT}srun bash run_train.sh\n"),
        (TAIL, f"python prepare.py\n{EXPORT}uv run python train.py\n"),
        (TAIL, f"python prepare.py\n{EXPORT}conda run -n x python train.py\n"),
        (EXPORT, f'if [ -n "${{LD_LIBRARY_PATH:-}}" ]; then\n{OLD}else\n{EXPORT}fi\n'),
        (EXPORT, f"[[ -v LD_LIBRARY_PATH ]] && {OLD}"),
        (EXPORT, f': "${{LD_LIBRARY_PATH:=}}"\n{OLD}'),
        (EXPORT, f"{EXPORT}ml list\nml -t avail gcc\nmodule list\n"),
        (START, f"cat > other.sh <<EOF\n#SBATCH --time=1\nEOF\necho '\n#SBATCH'\n{START}"),
        (START, START.replace("--export=ALL", "--export ALL")),
        (START, START.replace("train.py", "train.py --export=NONE")),
        (EXPORT, f"if true; then {EXPORT} fi\n"),
        (EXPORT, ""),
        (START, f"python -c 'import os; print(os.environ[\"LD_LIBRARY_PATH\"])'\n{START}"),
        (START, START.replace("train.py", "train.py 2>&1 | tee log")),
        (START, START.replace("torchrun", "bash -c 'exec torchrun \"$@\"' x")),
        (START, f"( {EXPORT} python other.py )\n{START}"),
        (START, START.replace("srun", "timeout 3600 srun")),
        ("#SBATCH --requeue", "##SBATCH --x\n#SBATCH --no-requeue"),
        ("#SBATCH --nodes=2", "#SBATCH -N 2 # two"),
        ("--nproc-per-node=8", '--nproc-per-node="$SLURM_GPUS_ON_NODE"'),
        ("--nproc-per-node=8", "--nproc-per-node=gpu"),
        (
            START,
            f'ARGS="{OPTIONS}"\n'.replace('"$head:29500"', "$head:29500")
            + f"{SRUN} $ARGS train.py\n",
        ),
        (START, f'timeout 9 srun -l bash -c "\n\nexport RANK=\\$SLURM_PROCID\n{RUN}"\n'),
        (START, f"ARGS=({OPTIONS})\n{SRUN} ${{ARGS[@]}} train.py\n"),
        (START, f"if true; then\n{START}else\ntorchrun --nproc-per-node=8 a.py\nfi\n"),
        ("ENV=", "source ~/.bashrc\nconda activate gr00t\nENV="),
        ("module load cuda", "module load miniforge3\nconda activate gr00t"),
        ("--ntasks-per-node=1", "--ntasks-per-node=1  # one launcher"),
        ("gres=gpu:h100:8", "gpus-per-node=8"),
        (
            f"torchrun {OPTIONS} train.py",
            "bash -c 'torchrun --nnodes=2 --nproc-per-node=8 --master-addr=$1 "
            '--node-rank=$SLURM_NODEID train.py\' x "$head"',
        ),
    ],
)
def test_other_good_scripts_have_nothing_wrong(good: str, also_good: str, env: Path) -> None:
    text = GOOD.replace("@ENV@", str(env))
    assert good in text
    text = text.replace(good, also_good)
    assert codes(text) == [], check_text(text)


def test_problem_names_the_line_and_the_line_that_mends_it(env: Path) -> None:
    text = GOOD.replace("@ENV@", str(env))
    strict = text.replace("${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", ":$LD_LIBRARY_PATH")
    (problem,) = check_text(strict)
    assert problem.line == 1 + strict[: strict.index("export LD_")].count("\n")
    assert problem.mend == EXPORT.strip()
    (problem,) = check_text(text.replace("--nproc-per-node=8", "--nproc_per_node 4"))
    assert problem.mend == START.strip().replace("--nproc-per-node=8", "--nproc_per_node 8")
    (problem,) = check_text(text.replace(' --rdzv-endpoint="$head:29500"', ""))
    assert 'srun --export=ALL torchrun --rdzv-id="$SLURM_JOB_ID" --rdzv-endpoint=' in problem.mend
    order = text.replace(EXPORT, "export LD_LIBRARY_PATH=/usr/lib:$ENV/lib:${LD_LIBRARY_PATH:-}\n")
    (problem,) = check_text(order)
    assert problem.mend == (
        'export LD_LIBRARY_PATH="${ENV}/lib:/usr/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"'
    )


def test_what_mends_a_script_mends_it(env: Path) -> None:
    text = GOOD.replace("@ENV@", str(env))
    for code, good, bad in BAD:
        broken = text.replace(good, bad)
        for problem in check_text(broken):
            lines = broken.split("\n")
            is_a_line = problem.line and not problem.mend.startswith(("move ", "export it ", "ls "))
            if is_a_line and code not in ("set-inside-python", "not-understood"):
                lines[problem.line - 1] = problem.mend
                assert code not in codes("\n".join(lines)), (code, problem)


def test_no_script_of_ours_is_called_wrong(tmp_path: Path) -> None:
    found = "\n".join([
        f"reelseek_env={tmp_path}", 'reelseek_path="$reelseek_env"', *_NVIDIA_LINES,
        'export LD_LIBRARY_PATH="$reelseek_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"',
    ])  # fmt: skip
    for number, job in enumerate(many_jobs(str(tmp_path), 200)):
        text = batch_script(job, found if number % 2 else "# nothing to set\n")
        assert codes(text) == [], (job, check_text(text))


@pytest.mark.parametrize("name", ["one_gpu", "eight_gpus"])
def test_the_reports_patterns_are_not_called_wrong(name: str, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    text = (Path(__file__).parent / "golden" / f"{name}.sh").read_text()
    assert codes(text.replace("@ENV@", str(tmp_path))) == []


@given(text=st.text(alphabet="a$\"'`(){};|&<>\n\\ =:#!-LDexport_PATH", max_size=80))
@settings(max_examples=150, deadline=None)
def test_no_text_breaks_the_reader(text: str) -> None:
    for problem in check_text(text):
        assert problem.code in CODES


@pytest.mark.parametrize(
    "text",
    ["(" * 20000, "$(" * 3000, "if a; then " * 2000, f"{'(' * 3000} a {')' * 3000} > f <<< b"],
)
def test_deep_nesting_does_not_break_the_reader(text: str) -> None:
    check_text(f"#!/bin/bash\n{text}\n")


def test_nested_shells_are_read_and_have_their_own_arguments() -> None:
    inner = read_script("""srun bash -c "bash -c 'python a.py \\$@' x one; b \\$@" y two\nc $@\n""")
    words = [command.words for command in inner.commands if command.name in ("python", "b", "c")]
    assert words == [("python", "a.py", "one"), ("b", "two"), ("c", "$@")]


def test_assignments_before_a_command_are_its_own() -> None:
    script = read_script('LD_LIBRARY_PATH=/tmp python t.py "$(N=3; echo $N)" $LD_LIBRARY_PATH\n')
    (start,) = starts(script)
    assert [(made.name, made.value) for made in start.command.assignments] == [(LD, "/tmp")]
    assert [made.name for made in script.assignments] == ["N"]
    assert start.words[-1] == "${LD_LIBRARY_PATH}"


def test_elements_of_arrays_are_no_variables_of_a_path() -> None:
    loop = "for d in $E/lib/python3.10/nvidia/*/lib; do echo $d; done\n"
    found = codes(f"#!/bin/bash\nlogs[i-1]=/x\nlogs[(]=/x\n{loop}")
    assert "python-version-written-in" in found


def test_environment_below_the_systems_folders_is_not_the_systems() -> None:
    text = "#!/bin/bash\nexport LD_LIBRARY_PATH=/usr/local/miniconda3/lib:/x/envs/y/lib\n"
    assert "order" not in codes(text)
    assert "order" in codes(text.replace("miniconda3", "cuda"))


def test_of_a_torchrun_over_several_lines_the_line_with_the_option_is_mended(env: Path) -> None:
    text = GOOD.replace("@ENV@", str(env)).replace(START, START.replace(" --", " \\\n    --"))
    text = text.replace("#SBATCH --nodes=2", "#SBATCH --nodes=3")
    (problem,) = [p for p in check_text(text) if p.code == "nnodes-differs"]
    assert text.split("\n")[problem.line - 1].strip() == "--nnodes=2 \\"
    assert problem.mend == "--nnodes=3 \\"


def test_command_line_says_where_and_how_bad(
    env: Path, tmp_path: Path, reelseek_command: Run
) -> None:
    good, bad = tmp_path / "good.sh", tmp_path / "bad.sh"
    good.write_text(GOOD.replace("@ENV@", str(env)))
    bad.write_text(good.read_text().replace(EXPORT, EXPORT.removeprefix("export ")))
    done = reelseek_command("slurm", "check", good)
    assert (done.returncode, done.stdout) == (0, f"{good}: nothing is wrong\n"), done.stderr
    done = reelseek_command("slurm", "check", good, bad)
    assert done.returncode == 1
    _good, line, mend = done.stdout.splitlines()
    assert line.startswith(f"{bad}:16: error: LD_LIBRARY_PATH is set and not exported")
    assert line.endswith(" [not-exported]")
    assert mend == f"    {EXPORT.strip()}"
    document = json.loads(reelseek_command("slurm", "check", bad, "--json").stdout)
    assert document["schema"] == "reelseek.slurm-check/1"
    (problem,) = document["scripts"][0]["problems"]
    assert (problem["line"], problem["code"]) == (16, "not-exported")


def test_notes_alone_do_not_make_a_script_wrong(env: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.sh"
    path.write_text(GOOD.replace("@ENV@", str(env)).replace("#SBATCH --requeue\n", ""))
    check = check_script(path)
    assert check.is_well
    assert [problem.severity for problem in check.problems] == [Severity.NOTE]


def test_what_is_no_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="can't be read"):
        check_script(tmp_path / "missing.sh")
    with pytest.raises(LaunchError, match="can't be read"):
        check_script(tmp_path)


def test_the_documents_table_is_the_table_of_codes() -> None:
    rows = [f"| `{code}` | {severity.value} | {text} |" for code, (severity, text) in CODES.items()]
    assert "\n".join(rows) in (REPOSITORY / "docs" / "slurm.md").read_text()
