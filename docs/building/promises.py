"""What propreg promises of files, kills and servers, the tests of each promise, and the table of what they tried.

A test run with ``PROPREG_PROMISES=docs/promises.json`` writes how many inputs each of these tests tried, and how many
of its cases failed; the page's table is made of that file.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "promises.json"
Counts = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Promise:
    """A promise.

    Args:
        says: What is promised.
        how: How it is tested.
        tests: The tests, as ``file::function`` below ``tests/``, or a file for all of its functions.
    """

    says: str
    how: str
    tests: tuple[str, ...]

    def has(self, test: str) -> bool:
        """Whether a test is one of it."""
        return test in self.tests or test.partition("::")[0] in self.tests


PROMISES = (
    Promise(
        "No code of a file runs",
        "pickles that name functions, views and triggers in a store",
        (
            "data/test_planetoid.py::test_a_hostile_pickle_is_refused_by_name",
            "data/test_planetoid.py::test_allowed_names_are_never_called",
            "store/test_verified.py::test_a_schema_of_others_is_not_trusted",
        ),
    ),
    Promise(
        "A damaged file is refused in one sentence, or read as what was written",
        "flipped bits, cuts, moved pieces, other types, shapes and numbers, in every kind of file",
        (
            "fuzz/test_fuzz.py",
            "data/test_corrupted.py",
            "data/test_own_corrupted.py",
            "data/test_npz.py::test_every_cut_and_every_flipped_bit_is_refused_or_harmless",
            "data/test_npz.py::test_damaged_copies_never_yield_other_bytes_or_take_memory",
            "data/test_safetensors.py::test_damaged_files_are_one_sentence_or_arrays_of_the_files_size",
            "fitting/test_saved_safetensors.py::test_damaged_files_are_one_sentence_or_the_same_model",
        ),
    ),
    Promise(
        "A changed number in a store or an export is never used",
        "one digit or one bit of a run changed",
        (
            "store/test_checksums.py::test_no_change_of_a_digit_is_imported",
            "store/test_integrity.py::test_a_flip_that_changes_what_is_read_is_reported",
            "store/test_verified.py::test_flips_are_never_read",
        ),
    ),
    Promise(
        "No file makes a reader run forever or use unbounded memory",
        "pickles that expand, zip bombs, pipes and devices, declared sizes",
        (
            "data/test_planetoid.py::test_what_unfolds_without_end_is_refused",
            "data/test_planetoid.py::test_what_unfolds_without_end_is_no_dataset",
            "data/test_planetoid.py::test_an_odd_pickle_is_refused",
            "data/test_npz.py::test_zip_bombs_are_refused_before_anything_is_allocated",
            "data/test_npz.py::test_members_that_are_not_what_they_declare_are_refused",
            "data/test_npz.py::test_a_pipe_does_not_make_it_wait",
            "data/test_ogb_raw.py::test_a_bomb_is_refused",
            "store/test_export.py::test_a_pipe_is_not_waited_for",
            "store/test_export.py::test_a_small_file_that_becomes_large_is_refused",
            "running/test_record.py::test_a_pipe_is_not_waited_for",
        ),
    ),
    Promise(
        "After a failed write, sync, rename or removal, or a kill there, the old or the new state is whole",
        "each such call of stores, exports, run folders and kept runs fails once, kills once and tears a write once",
        ("store/test_faults.py",),
    ),
    Promise(
        "Killed work resumes and ends in the same bytes as undisturbed work",
        "SIGKILL to sweeps, fits, `propreg run` and batches of molecules",
        (
            "study/execute/test_kill.py::test_killed_sweeps_end_in_the_same_bytes",
            "fitting/test_resume.py::test_a_killed_fit_loses_no_finished_run",
            "cli/test_run_resume.py::test_a_signal_loses_no_finished_training",
            "molecules/test_checkpoint.py::test_stopped_or_killed_at_any_epoch_it_ends_in_the_same_bits",
            "molecules/test_checkpoint.py::test_a_sweep_that_is_stopped_and_killed_ends_in_the_same_bytes",
        ),
    ),
    Promise(
        "Finished work survives an exception, Ctrl-C, SIGTERM and a full disk",
        "each of them, in fits, runs and sweeps",
        (
            "fitting/test_raising.py",
            "fitting/test_interrupted.py",
            "fitting/test_resume.py::test_an_interrupted_fit_goes_on_with_the_bits_of_an_undisturbed_one",
            "fitting/test_resume.py::test_a_full_disk_ends_the_keeping_and_not_the_fit",
            "cli/test_run_resume.py::test_an_interrupted_run_goes_on_in_its_folder",
            "cli/test_run_resume.py::test_a_disk_that_is_full_at_the_end_loses_nothing",
            "study/execute/test_stopped.py",
            "store/test_disk_full.py",
        ),
    ),
    Promise(
        "Concurrent processes overwrite nothing",
        "runs into one folder, sweeps on one store, writers on a network file system",
        (
            "running/test_folder.py::test_runs_at_the_same_time_have_a_folder_each",
            "cli/test_run.py::test_two_runs_at_the_same_time_have_a_folder_each",
            "study/execute/test_kill.py::test_two_processes_share_the_work",
            "study/execute/test_executors.py::test_batches_that_are_trained_at_the_same_time_end_in_the_same_bytes",
            "store/test_network.py",
        ),
    ),
    Promise(
        "Text of a file stays text, on the page and in the terminal",
        "names and remarks that are scripts, tags or control characters, in an HTML parser and in a browser",
        (
            "report/test_hostile.py",
            "report/test_browser_run.py::test_hostile_names_stay_names",
            "cli/test_run.py::test_names_of_the_user_do_not_reach_the_terminal_as_commands",
            "data/test_download.py::test_no_control_character_of_a_server_is_shown",
            "data/test_download.py::test_no_control_character_of_a_path_is_shown",
        ),
    ),
    Promise(
        "A server can neither substitute another file nor stall a download",
        "a server that cuts, drips, lies about lengths, redirects, or has a wrong certificate",
        ("data/test_download.py",),
    ),
)


def promised(test: str) -> bool:
    """Whether a test is one of a promise."""
    return any(promise.has(test) for promise in PROMISES)


def note(path: Path, found: Counts) -> None:
    """Put the counts of a test run into the file; tests that did not run keep theirs.

    Args:
        path: The file.
        found: By test the numbers of ``cases``, ``inputs`` and ``broken`` cases.
    """
    known: Counts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    both = {name: counts for name, counts in {**known, **found}.items() if promised(name)}
    text = json.dumps(dict(sorted(both.items())), indent=1) + "\n"
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def rows() -> Iterator[list[str]]:
    """The rows of the table: the promise, how it is tested, the files of its tests, inputs, broken ones."""
    known: Counts = json.loads(RECORD.read_text(encoding="utf-8"))
    for promise in PROMISES:
        mine = {test: counts for test, counts in known.items() if promise.has(test)}
        files = ", ".join(f"`{file}`" for file in sorted({test.partition("::")[0] for test in mine}))
        inputs, broken = (sum(counts[name] for counts in mine.values()) for name in ("inputs", "broken"))
        yield [promise.says, promise.how, files, f"{inputs:,}", f"{broken:,}"]
