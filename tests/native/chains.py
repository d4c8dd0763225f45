"""The report's chain of libraries, rebuilt for real with gcc in a conda-like environment.

::

    libtorchcodec_core7.so -> libavcodec.so.61 -> libopenvino.so.2520
                           -> libnppicc.so.12     -> libstdc++.so.6 with CXXABI_1.3.15

Everything is a real ELF file that glibc loads, and a Python that starts. The two libstdc++ are
copies of this system's, with one version name changed, so that whatever else a process needs of
libstdc++ still works.
"""

from __future__ import annotations

import functools
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection

from tests.conftest import skip_without
from tests.native.fake_packages import FAKE_DECODERS, FAKE_TORCH, FAKE_TORCHCODEC
from tests.patience import PATIENCE

CXXABI = "CXXABI_1.3.15"
"""The version that the report's libopenvino needs."""
CXXABI_SYMBOL = "_ZTIg"
"""A symbol of the version that is renamed to it: the type information of ``__float128``."""
SPARE_VERSION = "CXXABI_FLOAT128"
"""A version of libstdc++ that nothing needs, long enough to be renamed in its place."""

AV_SONAMES = {
    4: ("libavutil.so.56", "libavcodec.so.58"),
    5: ("libavutil.so.57", "libavcodec.so.59"),
    6: ("libavutil.so.58", "libavcodec.so.60"),
    7: ("libavutil.so.59", "libavcodec.so.61"),
}
"""Of the FFmpeg majors that torchcodec 0.5 is built for."""
SONAMES_OF_FFMPEG_7 = (
    "libavutil.so.59", "libswresample.so.5", "libswscale.so.8", "libavcodec.so.61",
    "libavformat.so.61", "libavfilter.so.10", "libavdevice.so.61",
)  # fmt: skip

THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TORCH_VERSION, TORCHCODEC_VERSION = "2.7.1+cu126", "0.5.0+cu126"

LAUNCHER = """
int Py_BytesMain(int, char **);
int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }
"""
"""A Python like conda's: its DT_RPATH is $ORIGIN/../lib, and comes before LD_LIBRARY_PATH."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A conda-like environment that holds the chain."""

    prefix: Path
    python: Path
    site_packages: Path
    old: Path
    """A folder outside it with an older libstdc++.so.6, as on many clusters."""
    spare: Path
    """Where libnppicc.so.12 lies until it is supplied."""

    @property
    def npp(self) -> Path:
        """Where the nvidia-npp-cu12 wheel puts its libraries."""
        return self.site_packages / "nvidia" / "npp" / "lib"

    def supply_npp(self) -> Path:
        """Put libnppicc.so.12 where the nvidia-npp-cu12 wheel has it."""
        self.npp.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self.spare / "libnppicc.so.12", self.npp)
        _dist_info(self.site_packages, "nvidia-npp-cu12", "12.3.3.100")
        return self.npp

    def run(self, code: str, **variables: str) -> tuple[int, str]:
        """The exit status and all the words of ``python -c code``, with only these variables."""
        return run_alone([str(self.python), "-c", code], **variables)


def run_alone(command: list[str], **variables: str) -> tuple[int, str]:
    """The exit status and all the words of a command that inherits no variable but PATH."""
    done = subprocess.run(
        command,
        env={"PATH": "/usr/bin:/bin", **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python to make an environment of."""

    path: Path
    version: str
    library: Path
    """Its libpython as a shared library."""
    stdlib: Path
    suffix: str
    """Of extension modules: ``.cpython-310-x86_64-linux-gnu.so``."""


def interpreter(version: str) -> Interpreter:
    """An installed Python, such as "3.10"; skips the test where there is none that will do."""
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python{version}"))
    running = Path(sys.base_prefix) / "bin" / f"python{version}"
    on_path = shutil.which(f"python{version}")
    for path in [*pyenv, running, *([Path(on_path)] if on_path else [])]:
        found = _ask(path)
        if found is not None:
            return found
    skip_without(f"python{version}", f"no Python {version} with a shared libpython is installed")
    raise AssertionError("skipped")


_ASKED = """
import importlib.machinery, json, os, sysconfig
get = sysconfig.get_config_var
print(json.dumps([os.path.join(get("LIBDIR"), get("INSTSONAME")), sysconfig.get_path("stdlib"),
                  importlib.machinery.EXTENSION_SUFFIXES[0]]))
"""


@functools.cache
def _ask(path: Path) -> Interpreter | None:
    if not path.is_file():
        return None
    done = subprocess.run(
        [path, "-I", "-S", "-c", _ASKED], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        return None
    library, stdlib, suffix = json.loads(done.stdout)
    if ".so" not in library or not Path(library).is_file():
        return None
    return Interpreter(path, path.name.removeprefix("python"), Path(library), Path(stdlib), suffix)


def build_libraries(folder: Path) -> Path:
    """Compile the chain into ``folder``; takes about a second. Skips where there is no gcc."""
    if shutil.which("gcc") is None:
        skip_without("gcc", "gcc, which compiles the chain, isn't installed")
    for name in ("lib", "stubs", "torch", "torchcodec", "old", "spare"):
        (folder / name).mkdir(parents=True)
    _build_libstdcxx(folder)
    _build_ffmpeg(folder)
    _build_torch(folder)
    for major in AV_SONAMES:
        _build_core(folder, major)
    return folder


def _build_libstdcxx(folder: Path) -> None:
    system = Path(_gcc("-print-file-name=libstdc++.so.6")).resolve()
    image = system.read_bytes()
    if SPARE_VERSION.encode() not in image:
        skip_without("gcc", f"this machine's libstdc++ has no {SPARE_VERSION} to rename")
    # On a machine whose own libstdc++ is new enough, the older one has to lose the version.
    older = rename_version(image, CXXABI, "CXXABI_1.3.xx")
    (folder / "old" / "libstdc++.so.6").write_bytes(older)
    (folder / "lib" / "libstdc++.so.6").write_bytes(rename_version(older, SPARE_VERSION, CXXABI))
    compile_library(
        folder / "stubs" / "libstdc++.so.6",
        f"int {CXXABI_SYMBOL};",
        versions=f"{CXXABI} {{ global: {CXXABI_SYMBOL}; }};",
    )


def _build_ffmpeg(folder: Path) -> None:
    lib, stubs = folder / "lib", folder / "stubs"
    compile_library(folder / "spare" / "libnppicc.so.12", "int nppicc(void) { return 12; }")
    compile_library(
        lib / "libopenvino.so.2520",
        f"extern int {CXXABI_SYMBOL}; int *openvino(void) {{ return &{CXXABI_SYMBOL}; }}",
        needs=[stubs / "libstdc++.so.6"],
        # DT_RUNPATH, so that LD_LIBRARY_PATH comes before the folder beside it.
        options=["-Wl,--enable-new-dtags,-rpath,$ORIGIN"],
    )
    for soname in SONAMES_OF_FFMPEG_7:
        name, _, major = soname.removeprefix("lib").partition(".so.")
        needs = [] if name == "avutil" else [lib / "libavutil.so.59"]
        if name == "avcodec":
            needs.append(lib / "libopenvino.so.2520")
        compile_library(
            lib / soname,
            f"int {name}_version(void) {{ return {major}; }}",
            needs=needs,
            options=["-Wl,--disable-new-dtags,-rpath,$ORIGIN"],
            versions=f"LIB{name.upper()}_{major} {{ global: *; }};",
        )
    for ffmpeg, sonames in AV_SONAMES.items():
        for soname in sonames if ffmpeg != 7 else ():
            compile_library(stubs / soname, f"int stub_of_{ffmpeg};")


def _build_torch(folder: Path) -> None:
    torch = folder / "torch"
    calls = "void _ZSt9terminatev(void); void (*of_libstdcxx)(void) = _ZSt9terminatev;"
    libstdcxx = [folder / "old" / "libstdc++.so.6"]
    for name, needs in {
        "libc10.so": [],
        "libtorch_cpu.so": [torch / "libc10.so"],
        "libtorch.so": [torch / "libtorch_cpu.so"],
    }.items():
        compile_library(
            torch / name, f"int {name[3:-3]};", needs=needs, options=["-Wl,-rpath,$ORIGIN"]
        )
    for variant, also in (("cxx", libstdcxx), ("c", [])):
        (torch / variant).mkdir()
        library = torch / variant / "libtorch_python.so"
        compile_library(
            library,
            calls if also else "int torch_python;",
            needs=[torch / "libtorch.so", *also],
            options=["-Wl,-rpath,$ORIGIN"],
        )
    compile_library(
        torch / "_C.so",
        "int torch_c;",
        needs=[library],
        options=["-Wl,-rpath,$ORIGIN/lib"],
        soname="",
    )


def _build_core(folder: Path, major: int) -> None:
    home = folder / ("lib" if major == 7 else "stubs")
    sonames = SONAMES_OF_FFMPEG_7 if major == 7 else AV_SONAMES[major]
    uses = "int avcodec_version(void); int core(void) { return avcodec_version(); }"
    compile_library(
        folder / "torchcodec" / f"libtorchcodec_core{major}.so",
        uses if major == 7 else f"int core{major};",
        needs=[
            folder / "torch" / "libtorch.so",
            folder / "torch" / "libc10.so",
            *(home / soname for soname in sonames),
            folder / "spare" / "libnppicc.so.12",
        ],
    )


def make_environment(
    libraries: Path,
    prefix: Path,
    python: Interpreter,
    *,
    torch_is_c: bool = False,
    has_rpath: bool = True,
) -> Environment:
    """A conda-like environment with the chain in it, without libnppicc.

    Args:
        libraries: What ``build_libraries`` made.
        prefix: The folder to make.
        python: What it is made of.
        torch_is_c: Let torch need no libstdc++, so that importing it maps none.
        has_rpath: Give Python conda's DT_RPATH, by which its libraries find the environment's
            lib folder; otherwise a DT_RUNPATH, by which only Python itself does.
    """
    home = prefix / "lib" / f"python{python.version}"
    site_packages = home / "site-packages"
    for folder in (prefix / "bin", prefix / "conda-meta", site_packages):
        folder.mkdir(parents=True)
    (prefix / "conda-meta" / "history").write_text("")
    _install_python(prefix, home, python, "disable" if has_rpath else "enable")
    for library in (libraries / "lib").iterdir():
        shutil.copy2(library, prefix / "lib")
    _install_torch(libraries / "torch", site_packages, python, "c" if torch_is_c else "cxx")
    _install_torchcodec(libraries / "torchcodec", site_packages)
    return Environment(
        prefix, prefix / "bin" / "python", site_packages, libraries / "old", libraries / "spare"
    )


def _install_python(prefix: Path, home: Path, python: Interpreter, new_tags: str) -> None:
    library = prefix / "lib" / python.library.name
    library.symlink_to(python.library)
    for entry in python.stdlib.iterdir():
        if entry.name not in ("site-packages", "EXTERNALLY-MANAGED"):
            (home / entry.name).symlink_to(entry)
    program = prefix / "bin" / f"python{python.version}"
    compile_library(
        program,
        LAUNCHER,
        needs=[library],
        options=["-no-pie", f"-Wl,--{new_tags}-new-dtags,-rpath,$ORIGIN/../lib"],
        is_program=True,
    )
    (prefix / "bin" / "python").symlink_to(program.name)


def _install_torch(built: Path, site_packages: Path, python: Interpreter, variant: str) -> None:
    torch = site_packages / "torch"
    (torch / "lib").mkdir(parents=True)
    for library in (*built.glob("lib*.so"), built / variant / "libtorch_python.so"):
        shutil.copy2(library, torch / "lib")
    shutil.copy2(built / "_C.so", torch / f"_C{python.suffix}")
    (torch / "__init__.py").write_text(FAKE_TORCH)
    (torch / "version.py").write_text(f"__version__ = '{TORCH_VERSION}'\ncuda = '12.6'\n")
    _dist_info(site_packages, "torch", TORCH_VERSION)


def _install_torchcodec(built: Path, site_packages: Path) -> None:
    torchcodec = site_packages / "torchcodec"
    (torchcodec / "decoders").mkdir(parents=True)
    for library in built.iterdir():
        shutil.copy2(library, torchcodec)
    (torchcodec / "__init__.py").write_text(FAKE_TORCHCODEC)
    (torchcodec / "decoders" / "__init__.py").write_text(FAKE_DECODERS)
    (torchcodec / "version.py").write_text(f"__version__ = '{TORCHCODEC_VERSION}'\n")
    _dist_info(site_packages, "torchcodec", TORCHCODEC_VERSION)


def _dist_info(site_packages: Path, name: str, version: str) -> None:
    folder = site_packages / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def processor_seconds() -> float:
    """What this process and the children that it waited for have used of the processors.

    Other work on the machine is not in it.
    """
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def rename_version(image: bytes, old: str, new: str) -> bytes:
    """A library's image in which the version definition ``old`` is called ``new``.

    The name in the string table and its hash are replaced (gABI, symbol versioning, vd_hash and
    vda_name); ``new`` is not longer than ``old``. An image without ``old`` comes back unchanged.
    """
    assert len(new) <= len(old)
    changed = bytearray(image)
    section = next(
        found
        for found in ELFFile(io.BytesIO(image)).iter_sections()
        if isinstance(found, GNUVerDefSection)
    )
    place = section["sh_offset"]
    for definition, names in section.iter_versions():
        name = next(iter(names))
        if name.name == old:
            text = section.stringtable["sh_offset"] + name["vda_name"]
            changed[text : text + len(old)] = new.encode().ljust(len(old), b"\0")
            changed[place + 8 : place + 12] = _elf_hash(new).to_bytes(4, sys.byteorder)
        place += definition["vd_next"]
    return bytes(changed)


def _elf_hash(name: str) -> int:
    """The hash of a version's name (gABI, "Hash Table Section")."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def compile_library(
    target: Path,
    code: str,
    *,
    needs: Iterable[Path] = (),
    options: Iterable[str] = (),
    versions: str = "",
    soname: str | None = None,
    is_program: bool = False,
) -> None:
    """Make one library (or program) that needs the given ones, used by it or not."""
    source = target.with_name(target.name + ".c")
    source.write_text(code)
    arguments = ["-x", "c", "-fno-builtin", str(source), "-x", "none", "-o", str(target)]
    if not is_program:
        arguments += ["-shared", "-fPIC"]
        arguments += [f"-Wl,-soname,{target.name}"] if soname is None else []
    if versions:
        script = target.with_name(target.name + ".map")
        script.write_text(versions)
        arguments.append(f"-Wl,--version-script,{script}")
    # What the needed libraries need in turn is looked for when they are loaded, not now.
    linking = ["-Wl,--no-as-needed,--allow-shlib-undefined"]
    _gcc(*arguments, *options, *linking, *map(str, needs))
    for scrap in target.parent.glob(f"{target.name}.[cm]*"):
        scrap.unlink()


def _gcc(*arguments: str) -> str:
    done = subprocess.run(
        ["gcc", *arguments], capture_output=True, text=True, check=False, env=_gcc_environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _gcc_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
