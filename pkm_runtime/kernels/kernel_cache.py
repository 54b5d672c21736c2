# SPDX-License-Identifier: Apache-2.0
"""Cache of compiled kernels from one process to the next.

numba caches them beside their sources, or in the user's cache where that folder is read-only. Here moreover:

- the cache beside the sources serves users who cannot write there, so that an installation compiles for all;
- where neither folder can be written, kernels go to a temporary folder, and a line says so; numba refuses the import;
- a long kernel is not compiled again into those that call it: it is called where it is, and loaded with them;
- loading a kernel does not make numba ready to compile one or to link it, which takes longer than all of a Delta's;
- of several processes that need the same kernel, one compiles it, and the others wait and load it.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import hashlib
import logging
import os
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

from llvmlite import binding
from numba import core
from numba.core.runtime import rtsys

from pkm_runtime.kernels import purpose_of
from pkm_runtime.progress import progress
from pkm_runtime.whole_files import is_safe

_FILE = "compiling.lock"
_PATIENCE = 60.0  # s; whoever cannot compile a kernel, and lives on, keeps others waiting no longer
_POLL_EVERY = 0.02  # s
_LONG = 300  # instructions of a function that is not compiled again into those that call it
caching: Any = core.caching
codegen: Any = core.codegen
config: Any = core.config
_LOG = logging.getLogger(__name__)  # without a handler, warnings are lines on stderr
_COUNTING = b"NRT_"  # how symbols of numba's reference counting begin, which few kernels use
_SILENT_FOR = 2.0  # s of compiling; what takes longer is told
_AGAIN_AFTER = 10.0  # s
_BEGAN = time.monotonic()
_IMPORT = re.compile(r"^from (pkm_[\w.]+) import (\([^)]*\)|.*)$", re.MULTILINE)
_NAME = re.compile(r"\w+")
_ALL_BUT_DONE = 0.95  # computers differ
_WHAT = "compiling kernels, once on this computer"


# One byte of a file in the cache folder, free again when its process ends, however it ends. Kernels wait for those that
# they call, which never call them: no deadlock.
class CompileLock:
    """Which process compiles the kernel `name` of a cache folder; nests, as a kernel compiled for two signatures."""

    def __init__(self, folder: str, name: str) -> None:
        self._file = _open(folder)
        self._byte = zlib.crc32(name.encode())
        self._held = 0

    def take(self) -> bool:
        """Wait until no other process compiles this kernel; True where another did, and may have cached it."""
        self._held += 1
        if self._held > 1 or self._file is None:
            return False
        end = None
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._byte)
                return end is not None
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):  # a file system without locks
                    return False
            now = time.monotonic()
            end = end or now + _PATIENCE
            if now > end:
                return True
            time.sleep(_POLL_EVERY)

    def give(self) -> None:
        """Free the lock."""
        self._held = max(0, self._held - 1)
        if self._held == 0 and self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._byte)


@cache
def _open(folder: str) -> int | None:
    """The file of a folder, open as long as the process lives: closing it would free all of its locks."""
    try:
        return os.open(os.path.join(folder, _FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return None


class _Locator(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):
    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._folder = writable_folder(os.path.dirname(os.path.abspath(file)))

    def get_cache_path(self) -> str:
        return self._folder

    def ensure_cache_path(self) -> None:
        os.makedirs(self._folder, exist_ok=True)

    def get_source_stamp(self) -> str:
        """The contents of the source file, and of every file of the suite that it imports, as a hash."""
        return source_stamp(self._py_file)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Locator | None:
        return cls(function, file) if os.path.exists(file) else None


@cache
def _no_bitcode() -> bytes:
    return bytes(binding.parse_assembly("").as_bitcode())


class _Loaded(codegen.JITCodeLibrary):
    """A compiled kernel from the cache. Its bitcode is parsed only when a kernel is compiled that links it."""

    bitcode: bytes | None

    def _parse(self) -> None:
        if self.bitcode is not None:
            self._shared_module, self.bitcode = binding.parse_bitcode(self.bitcode), None
            self._codegen._engine._load_defined_symbols(self._shared_module)
            _leave_out(self._shared_module)

    def _get_module_for_linking(self) -> Any:
        self._parse()
        return super()._get_module_for_linking()

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function of the kernel, 0 if it has none of this name."""
        if not self._codegen._engine.is_symbol_defined(name):
            self._parse()
        return int(super().get_pointer_to_function(name))


# Kernels of this process, by the names of their machine code: module, name, types of the arguments.
_SYMBOLS: dict[str, tuple[str, str, Any]] = {}
_ENVIRONMENTS: dict[str, Any] = {}  # numba's, of kernels that were loaded: each is set once, and lives on


# A name of code is of use where other processes find its kernel by module and name.
def _note(function: Any, sig: Any, kernel: Any) -> None:
    module, name = function.__module__, function.__name__
    if getattr(getattr(sys.modules.get(module), name, None), "py_func", None) is function:
        _SYMBOLS[kernel.fndesc.llvm_func_name] = module, name, sig


# Callers link a kernel's code without its long functions, which they call where they are.
def _leave_out(module: Any) -> None:
    for function in module.functions:
        if not function.is_declaration and function.name in _SYMBOLS and _is_long(function):
            function.linkage = "available_externally"  # inlined where that is worth it, and not compiled again


def _is_long(function: Any) -> bool:
    steps = (step for block in function.blocks for step in block.instructions)
    return next(islice(steps, _LONG, None), None) is not None


class _Kept(caching.CompileResultCacheImpl):
    _locator_classes = (_Locator,)

    def reduce(self, cres: Any) -> Any:  # before numba's own: which others it calls where they are
        functions = cres.library._final_module.functions
        called = {f.name: _SYMBOLS[f.name] for f in functions if f.is_declaration and f.name in _SYMBOLS}
        return called, *super().reduce(cres)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """The kernel from its cache entry, its bitcode unparsed; None where one that it calls was compiled anew."""
        called, (name, kind, (object_code, bitcode)), function, *others = payload
        engine = target_context.codegen()._engine
        for symbol, (module, kernel, sig) in called.items():
            if not engine.is_symbol_defined(symbol):
                getattr(sys.modules[module], kernel).compile(sig)
                if not engine.is_symbol_defined(symbol):
                    return None
        *others, environments = others
        new = tuple(one for one in environments if one.env_name not in _ENVIRONMENTS)
        _ENVIRONMENTS.update((one.env_name, one) for one in new)
        if _COUNTING in object_code:
            rtsys.initialize(target_context)
        engine._defined_symbols |= {function.llvm_cpython_wrapper_name, function.llvm_func_name}
        kernel = super().rebuild(target_context, ((name, kind, (object_code, _no_bitcode())), function, *others, new))
        kernel.library.__class__, kernel.library.bitcode = _Loaded, bitcode
        return kernel


class _Index(caching.IndexDataCacheFile):
    """What is cached of one kernel; nothing where an index names types that another version of the suite had."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (ImportError, AttributeError):
            return {}


class _OneKernel(caching.FunctionCache):
    _impl_class = _Kept

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        locator = self._impl.locator
        index = partial(_Index, filename_base=self._impl.filename_base, source_stamp=locator.get_source_stamp())
        self._cache_file = index(cache_path=self._cache_path)
        beside = os.path.join(os.path.dirname(os.path.abspath(locator._py_file)), "__pycache__")
        self._beside = beside
        self._installed = None if config.CACHE_DIR or beside == self._cache_path else index(cache_path=beside)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # numba's own refreshes the context here. Compilers do so themselves (`CompilerBase`); what they have compiled
        # needs none of it.
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if self._installed is not None:
            data = None
            with suppress(OSError):  # not to be read either
                if _is_safe(self._beside):
                    data = self._installed.load(self._index_key(sig, target_context.codegen()))
            kernel = None if data is None else self._impl.rebuild(target_context, data)
            if kernel is not None:
                return kernel
        return super()._load_overload(sig, target_context)

    def _save_overload(self, sig: Any, data: Any) -> None:
        try:
            super()._save_overload(sig, data)
        except OSError as error:
            _say_that_nothing_is_kept(str(error))


class Compiling:
    """Tells on stderr where compiling takes long, without a thread: it looks when a kernel begins or ends."""

    def __init__(self) -> None:
        self._open = 0  # kernels that are being compiled, each for another
        self._purpose = ("", 0.0)  # of the outermost of them, by `purpose_of`
        self._worked: dict[str, float] = {}  # processor time that each purpose took, before the kernel that is open
        self._began = 0.0  # processor time when the outermost began
        self._seen = self._spent = 0.0  # s: when one began or ended, on the monotonic clock; spent on all
        self._next = _SILENT_FOR
        self.quiet = False  # whoever runs tells how long it takes

    def begins(self, module: str = "") -> None:
        """A kernel of a module is about to be compiled."""
        self._pass()
        if not self._open:
            self._purpose = purpose_of(module)
            self._began = time.process_time()
        self._open += 1

    def ends(self) -> None:
        """A kernel has been compiled."""
        self._pass()
        self._open = max(0, self._open - 1)
        if not self._open:
            self._worked[self._purpose[0]] = self._work()

    def in_words(self) -> str:
        """What is being compiled, for what, and how much of it is done; empty if nothing is."""
        if not self._open:
            return ""
        what, total = self._purpose
        return f"{_WHAT}: {what}, about {min(_ALL_BUT_DONE, self._work() / total):.0%} done" if what else _WHAT

    def _work(self) -> float:
        """Processor time [s] spent on the open kernels: on a busy computer the clock says little."""
        return self._worked.get(self._purpose[0], 0.0) + time.process_time() - self._began

    def _pass(self) -> None:
        now = time.monotonic()
        self._spent += now - self._seen if self._open else 0.0
        self._seen = now
        if self._spent >= self._next and not self.quiet:
            self._next = self._spent + _AGAIN_AFTER
            _LOG.warning("pkm: %s: %.0f s so far", self.in_words() or _WHAT, self._spent)


COMPILING = Compiling()


class KernelCache(caching._Cache):
    """Cache of one kernel, for each signature; its folder is searched when the kernel is first called."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @cached_property
    def _kept(self) -> _OneKernel:
        return _OneKernel(self._function)

    @cached_property
    def _turn(self) -> CompileLock:
        return CompileLock(self.cache_path, self._kept._impl.filename_base)

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._kept.cache_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for a signature, or None: then this process has the turn to compile it."""
        kernel = self._kept.load_overload(sig, target_context)
        if kernel is None:
            waited = self._turn.take()
            kernel = self._kept.load_overload(sig, target_context) if waited else None
            if kernel is None:
                COMPILING.begins(self._function.__module__)
            else:
                self._turn.give()
        if kernel is not None:
            _note(self._function, sig, kernel)
        return kernel

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Cache a compiled kernel."""
        self._kept.save_overload(sig, cres)
        _note(self._function, sig, cres)
        _leave_out(cres.library._get_module_for_linking())
        self._turn.give()
        COMPILING.ends()

    def enable(self) -> None:
        """Use the cache again."""
        self._kept.enable()

    def disable(self) -> None:
        """Neither cache kernels nor load them."""
        self._kept.disable()

    def flush(self) -> None:
        """Forget the cached kernels."""
        self._kept.flush()


@cache
def source_stamp(file: str) -> str:
    """Hash of what a kernel is compiled from: its file, all files of the suite that this one imports, and so on.

    A file that changed since this process began may be in memory in either version: the hash is this process's alone.
    That is asked of its age, for a clock that begins in 1970 may have been set meanwhile.
    """
    reached, left = {file}, [file]
    while left:
        new = _imported(left.pop()) - reached
        reached |= new
        left += new
    seal = hashlib.sha256()
    for one in sorted(reached):
        seal.update(_contents(one))
        if 0.0 <= time.time() - os.stat(one).st_mtime < time.monotonic() - _BEGAN:
            seal.update(f"{os.getpid()} {_BEGAN}".encode())
    return seal.hexdigest()


@cache
def _contents(file: str) -> bytes:
    return Path(file).read_bytes()


@cache
def _imported(file: str) -> frozenset[str]:
    """Files of the loaded modules of the suite that a file imports by name."""
    found = set()
    for module, names in _IMPORT.findall(_contents(file).decode()):
        for name in (module, *(f"{module}.{part}" for part in _NAME.findall(names))):
            path = getattr(sys.modules.get(name), "__file__", None)
            if path and not path.endswith("__init__.py"):
                found.add(path)
    return frozenset(found)


@cache
def writable_folder(sources: str) -> str:
    """Cache folder for kernels of a folder of sources: the first writable one of the places."""
    name = caching._CacheLocator.get_suitable_cache_subpath(os.path.join(sources, "any.py"))
    if config.CACHE_DIR:
        places = [os.path.join(config.CACHE_DIR, name)]
    else:
        users = caching.AppDirs(appname="numba", appauthor=False).user_cache_dir
        places = [os.path.join(sources, "__pycache__"), os.path.join(users, name)]
    for place in places:
        if _can_write(place):
            return place
    return os.path.join(_temporary_folder(), name)


def _can_write(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        return _is_safe(folder)
    except OSError:
        return False


def _is_safe(folder: str) -> bool:
    """Whether only those who can write to the sources can write to a folder of kernels; its contents are run."""
    above, name = os.path.split(folder)
    return is_safe(os.lstat(folder), os.stat(above) if name == "__pycache__" else None)


@cache
def _temporary_folder() -> str:
    """A folder writable by this user alone, because what is read from it is run. Says that it is used."""
    folder = Path(tempfile.gettempdir()) / f"pkm_kernels_{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        own = is_safe(folder.lstat())
    except OSError:
        own = False
    if not (own and _can_write(str(folder))):
        folder = Path(tempfile.mkdtemp(prefix="pkm_kernels_"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        kept = "until this process ends"
    else:
        kept = "until the machine clears it"
    _LOG.warning(
        "pkm: compiled kernels are kept in %s, %s: neither the package's folder nor %s can be written. "
        "NUMBA_CACHE_DIR names another place.",
        folder,
        kept,
        "~/.cache/numba" if not config.CACHE_DIR else config.CACHE_DIR,
    )
    return str(folder)


@cache
def _say_that_nothing_is_kept(reason: str) -> None:
    _LOG.warning("pkm: compiled kernels cannot be kept, so that the next start compiles them again: %s", reason)


KERNELS = "loading kernels"  # and what is compiled of them is told beside


@contextmanager
def making(what: str, more: Callable[[], str] = str) -> Iterator[None]:
    """`progress` of `what` is done, whose messages replace those of kernels; `more` gives text to add beside them."""
    COMPILING.quiet = True
    try:
        with progress(what, lambda: COMPILING.in_words() or more()):
            yield
    finally:
        COMPILING.quiet = False
