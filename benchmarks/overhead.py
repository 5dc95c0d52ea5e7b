"""What measuring through the collection costs, beside the same fio jobs in a plain shell loop, in one run.

    python benchmarks/overhead.py [--points 20] [--runtime 5] [--rounds 8]

Prints three figures of the design's budget: wall time beyond fio's own runtimes for a plan of many points, the same
for one point of two seconds, and IOPS through the collection against IOPS by hand. Needs root (loop devices).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
VOLUMES = 4


def run_collection(
    results: pathlib.Path, counts: list[int], runtime_s: int, ramp_s: int, workloads: list
) -> tuple[float, dict]:
    """Wall time of one host_max run, and its results.json."""
    settings = {
        "hostmax_results": str(results),
        "hostmax_thin_count": VOLUMES,
        "hostmax_thin_cap": None,
        "hostmax_volume_counts": counts,
        "hostmax_runtime_s": runtime_s,
        "hostmax_ramp_s": ramp_s,
        "hostmax_workloads": workloads,
        "hostmax_fail_on": ["never"],
    }
    command = ["ansible-playbook", str(ROOT / "playbooks/host_max.yml"), "-e", json.dumps(settings)]
    begun_s = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    wall_s = time.monotonic() - begun_s
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return wall_s, json.loads((results / "latest/results.json").read_text())


class ByHand:
    """The same number of uncapped thin volumes, made with losetup, and fio in a shell loop over the run's own jobs."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.devices: list[str] = []

    def __enter__(self) -> ByHand:
        (self.directory / "volumes").mkdir()
        for number in range(1, VOLUMES + 1):
            image = self.directory / f"{number}.img"
            with image.open("wb") as handle:
                handle.truncate(10**12)
            attach = ["losetup", "--find", "--show", "--direct-io=on", str(image)]
            device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
            self.devices.append(device)
            (self.directory / f"volumes/thin{number:02}").symlink_to(device)
        return self

    def __exit__(self, *_error: object) -> None:
        for device in self.devices:
            subprocess.run(["losetup", "-d", device], check=False)

    def loop(self, jobs: list[str]) -> tuple[float, list[float]]:
        """Wall time of a shell loop over the jobs, and the IOPS of each."""
        for number, job in enumerate(jobs):
            plain = [
                line for line in job.splitlines() if not line.startswith(("write_iops_log", "log_", "iopsavg", "bwavg"))
            ]
            (self.directory / f"{number:03}.fio").write_text("\n".join(plain) + "\n")
        script = "for job in *.fio; do fio --readonly --eta=never --output-format=json+ --output=$job.json $job; done"
        begun_s = time.monotonic()
        subprocess.run(["sh", "-c", script], cwd=self.directory, check=True)
        wall_s = time.monotonic() - begun_s
        rates = []
        for number in range(len(jobs)):
            document = json.loads((self.directory / f"{number:03}.fio.json").read_text())
            rates.append(sum(entry["read"]["iops"] for entry in document["jobs"]))
            (self.directory / f"{number:03}.fio").unlink()
        return wall_s, rates


def jobs_of(results: dict) -> list[str]:
    return [job for point in results["points"] for job in point["job"].values()]


def wall_beyond(label: str, points: int, runtime_s: int, work: pathlib.Path) -> None:
    """Print what a plan of ``points`` points costs beyond the time fio was asked to run."""
    workloads = [
        {"name": f"w{k}", "rw": "randread", "block_size_bytes": 4096, "io_depth": 8, "num_jobs": 1}
        for k in range(points)
    ]
    wall_s, results = run_collection(work / "results", [1], runtime_s, 0, workloads)
    with tempfile.TemporaryDirectory(dir=work) as directory, ByHand(pathlib.Path(directory)) as hand:
        hand_s, _rates = hand.loop(jobs_of(results))
    asked_s = points * runtime_s
    print(f"{label}: {points} point(s) of {runtime_s} s; wall time beyond fio's runtimes")
    for way, seconds in (("through the collection", wall_s - asked_s), ("fio in a shell loop", hand_s - asked_s)):
        print(f"  {way:<22} {seconds:6.2f} s, {seconds / points:5.2f} s a point")


def load_ratio(rounds: int, work: pathlib.Path) -> None:
    """Print IOPS through the collection / IOPS by hand, of the same jobs in alternating rounds of four short points."""
    points, runtime_s, ratios = 4, 3, []
    same = [
        {"name": f"w{k}", "rw": "randread", "block_size_bytes": 4096, "io_depth": 32, "num_jobs": 1}
        for k in range(points)
    ]
    with tempfile.TemporaryDirectory(dir=work) as directory, ByHand(pathlib.Path(directory)) as hand:
        for number in range(rounds):
            _wall_s, results = run_collection(work / "results", [VOLUMES], runtime_s, 1, same)
            through = statistics.fmean(point["total"]["iops"] for point in results["points"])
            _hand_s, rates = hand.loop(jobs_of(results))
            ratios.append(through / statistics.fmean(rates))
            print(
                f"  round {number + 1}: ratio {ratios[-1]:.3f} ({through:,.0f} IOPS through the collection)", flush=True
            )
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    print(f"IOPS through the collection / by hand: {statistics.fmean(ratios):.3f} +- {error:.3f} (budget 0.99)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--runtime", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("fio") is None:
        sys.exit("This benchmark needs root and fio.")
    with tempfile.TemporaryDirectory(prefix="hostmax-benchmark-") as name:
        work = pathlib.Path(name)
        if options.points:
            wall_beyond("many points (budget 0.4 s a point + 6 s)", options.points, options.runtime, work)
            wall_beyond("one point (budget 5 s)", 1, 2, work)
        load_ratio(options.rounds, work)


if __name__ == "__main__":
    main()
