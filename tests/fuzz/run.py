"""``make fuzz``: every reader of files from others meets damaged ones; what breaks goes into the corpus.

With atheris installed, inputs are chosen by the code that they reach, one process per reader; else honest files are
mutated at random. Names of readers on the command line choose some of them.
"""

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from pathlib import Path

from fuzz.harness import Found, Reader, fuzz, guided, keep
from fuzz.targets import TARGETS


def main() -> None:
    """Fuzz, print a table, and end with 1 if something broke."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0, help="for all readers together; default 300")
    parser.add_argument("--seed", type=int, help="of the mutations; by default another one each time")
    parser.add_argument("--mutations", action="store_true", help="also where atheris is installed")
    parser.add_argument("readers", nargs="*", choices=[[], *TARGETS], metavar="READER", help=", ".join(TARGETS))
    chosen = parser.parse_args()
    names, seed = chosen.readers or list(TARGETS), chosen.seed if chosen.seed is not None else time.time_ns() >> 20
    each, broken = chosen.seconds / len(names), 0
    by_code = importlib.util.find_spec("atheris") is not None and not chosen.mutations
    print(f"{'atheris' if by_code else f'mutations, seed {seed}'}, {each:.0f} s a reader", flush=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            if by_code:
                broken += in_child(name, Path(folder), each)
            else:
                reader = Reader(name, Path(folder))
                report(name, fuzz(reader, seconds=each, first=seed << 32))
                for path, (_, _, why) in zip(keep(reader), reader.found.broken, strict=True):
                    print(f"  {path}: {why}")
                broken += len(reader.found.broken)
    sys.exit(broken > 0)


def report(name: str, found: Found) -> None:
    """A line of the table."""
    print(
        f"{name:<14} {found.inputs:>8,} inputs {found.refused:>8,} refused {found.read:>7,} read "
        f"{len(found.broken):>4} broken",
        flush=True,
    )


def in_child(name: str, folder: Path, seconds: float) -> bool:
    """Run atheris, which ends its process; returns whether something broke."""
    child = os.fork()
    if child == 0:
        guided(Reader(name, folder), [f"-max_total_time={seconds:.0f}"])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


if __name__ == "__main__":
    main()
