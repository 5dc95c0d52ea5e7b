# Copyright: (c) 2026, hostmax.storage contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import pytest
from ansible_collections.hostmax.storage.plugins.plugin_utils.volume_model import (
    GB_BYTES,
    Caps,
    ExpectationError,
    host_limit,
    level_figures,
    level_vpu,
    shape_caps,
    volume_caps,
)

# "Block Volume Performance", 2024-07-19: VPU, IOPS/GB, max IOPS, GB for max IOPS, KB/s/GB, max MB/s
LEVELS = [
    (0, 2, 3_000, 1_500, 240, 480),
    (10, 60, 25_000, 417, 480, 480),
    (20, 75, 50_000, 667, 600, 680),
    (30, 90, 75_000, 833, 720, 880),
    (40, 105, 100_000, 952, 840, 1_080),
    (50, 120, 125_000, 1_042, 960, 1_280),
    (60, 135, 150_000, 1_111, 1_080, 1_480),
    (70, 150, 175_000, 1_167, 1_200, 1_680),
    (80, 165, 200_000, 1_212, 1_320, 1_880),
    (90, 180, 225_000, 1_250, 1_440, 2_080),
    (100, 195, 250_000, 1_282, 1_560, 2_280),
    (110, 210, 275_000, 1_310, 1_680, 2_480),
    (120, 225, 300_000, 1_333, 1_800, 2_680),
]
# the tables of the level pages: GB, VPU, IOPS, MB/s
VOLUMES = [
    (50, 0, 100, 12),
    (50, 10, 3_000, 24),
    (50, 20, 3_750, 30),
    (50, 120, 11_250, 90),
    (500, 0, 1_000, 120),
    (500, 10, 25_000, 240),
    (500, 20, 37_500, 300),
    (500, 120, 112_500, 900),
    (1024, 0, 2_048, 245.76),
    (1024, 10, 25_000, 480),
    (1024, 20, 50_000, 614.4),
    (1024, 120, 230_400, 1_843.2),
]
# the same tables' column "8 KB block": GB, VPU, MB/s (1 KB of a block is 1,000 bytes there)
AT_8_KB = [
    (50, 0, 0.8),
    (50, 10, 24),
    (50, 20, 30),
    (50, 120, 90),
    (500, 0, 8),
    (500, 10, 200),
    (500, 20, 300),
    (500, 120, 900),
    (1024, 0, 16.384),
    (1024, 10, 200),
    (1024, 20, 400),
    (1024, 120, 1_843.2),
]
# sums of 20 volumes of 1 TB: VPU, IOPS, MB/s
TWENTY = [(10, 500_000, 9_600), (20, 1_000_000, 12_288), (30, 1_500_000, 14_745.6)]


@pytest.mark.parametrize(("vpu", "iops_per_gb", "max_iops", "size_gb", "kb_per_s_per_gb", "max_mb_per_s"), LEVELS)
def test_every_published_level_follows_from_the_formula(
    vpu, iops_per_gb, max_iops, size_gb, kb_per_s_per_gb, max_mb_per_s
):
    assert level_figures(vpu) == {
        "iops_per_gb": iops_per_gb,
        "max_iops": max_iops,
        "kb_per_s_per_gb": kb_per_s_per_gb,
        "max_mb_per_s": max_mb_per_s,
    }
    assert volume_caps(size_gb * GB_BYTES, vpu).iops == pytest.approx(max_iops, rel=0.001)
    assert volume_caps((size_gb - 2) * GB_BYTES, vpu).iops < max_iops


@pytest.mark.parametrize(("size_gb", "vpu", "iops", "mb_per_s"), VOLUMES)
def test_every_published_volume_has_its_caps(size_gb, vpu, iops, mb_per_s):
    caps = volume_caps(size_gb * GB_BYTES, vpu)
    assert (caps.iops, caps.bytes_per_s) == (pytest.approx(iops), pytest.approx(mb_per_s * 1e6))


@pytest.mark.parametrize(("size_gb", "vpu", "mb_per_s"), AT_8_KB)
def test_at_8_kb_a_volume_reaches_the_smaller_of_both_caps(size_gb, vpu, mb_per_s):
    iops, _unused = volume_caps(size_gb * GB_BYTES, vpu).at(8_000, 100)
    assert iops * 8_000 == pytest.approx(mb_per_s * 1e6)


@pytest.mark.parametrize(("vpu", "iops", "mb_per_s"), TWENTY)
def test_twenty_volumes_add_up(vpu, iops, mb_per_s):
    volumes = [volume_caps(1024 * GB_BYTES, vpu)] * 20
    assert host_limit(volumes, None, 4096, 100)[0] == pytest.approx(iops)
    assert host_limit(volumes, None, 2**20, 100)[0] * 2**20 == pytest.approx(mb_per_s * 1e6)


def test_the_maximum_caps_the_volume_and_not_the_rate_for_each_gb():
    size_gb, vpu = 1024, 10
    wrong = min(1.5 * vpu + 45, 2500 * vpu) * size_gb
    assert wrong == 61_440
    assert volume_caps(size_gb * GB_BYTES, vpu).iops == 25_000


@pytest.mark.parametrize(
    ("shape", "options", "iops", "mb_per_s"),
    [
        ("BM.Standard.E5.192", {}, 1_300_000, 12_000),
        ("BM.Standard.E4.128", {}, 1_300_000, 6_000),
        ("BM.Standard.A1.160", {}, 800_000, 6_000),
        ("BM.Standard2.52", {}, 625_000, 3_000),
        ("BM.DenseIO1.36", {}, 300_000, 1_200),
        ("VM.Standard2.24", {}, 480_000, 2_880),
        ("VM.Standard.E2.1.Micro", {}, 6_000, 60),
        ("VM.Standard.E4.Flex", {"ocpus": 8}, 160_000, 960),
        ("VM.Standard.E4.Flex", {"ocpus": 64}, 600_000, 4_800),
        ("VM.Standard.E4.Flex", {"network_gbps": 10}, 200_000, 1_200),
        ("VM.Optimized3.Flex", {"ocpus": 5}, 400_000, 2_400),
        ("VM.Standard3.Flex", {"ocpus": 40}, 600_000, 3_840),
    ],
)
def test_an_instance_has_the_figures_of_its_shape(shape, options, iops, mb_per_s):
    caps = shape_caps(shape, **options)
    assert (caps.iops, caps.bytes_per_s) == (iops, mb_per_s * 1_000_000)


@pytest.mark.parametrize(
    ("shape", "options", "at_4k", "at_1m"),
    [
        ("BM.Standard.E4.128", {}, 500_000, 6_000),
        ("VM.Standard.E4.Flex", {"network_gbps": 40}, 500_000, 4_800),
        ("BM.Standard2.52", {}, 500_000, 3_000),
        ("BM.DenseIO1.36", {}, 1.2e9 / 4096, 1_200),
    ],
)
def test_a_host_reaches_the_smallest_of_volumes_iops_and_bandwidth(shape, options, at_4k, at_1m):
    volumes, host = [volume_caps(1024 * GB_BYTES, 10)] * 20, shape_caps(shape, **options)
    assert host_limit(volumes, host, 4096, 100)[0] == pytest.approx(at_4k)
    assert host_limit(volumes, host, 2**20, 100)[0] * 2**20 == pytest.approx(at_1m * 1e6)


def test_the_limit_says_which_part_is_the_smallest():
    volumes, host = [volume_caps(1024 * GB_BYTES, 10)] * 20, shape_caps("BM.Standard.E4.128")
    parts = host_limit(volumes, host, 256 * 1024, 100)[1]
    assert [(part["what"], part["bound"]) for part in parts] == [
        ("the bandwidth caps of 20 volume(s)", False),
        ("the host's IOPS", False),
        ("the host's bandwidth", True),
    ]


@pytest.mark.parametrize(
    ("read_percent", "total"), [(100, 25_000), (0, 25_000), (50, 50_000), (70, 25_000 / 0.7), (30, 25_000 / 0.7)]
)
def test_a_cap_for_each_direction_lets_a_mix_reach_more(read_percent, total):
    assert Caps(25_000, 480_000_000, each_direction=True).at(4096, read_percent)[0] == pytest.approx(total)
    assert Caps(25_000, 480_000_000).at(4096, read_percent)[0] == 25_000


def test_a_volume_without_caps_is_bound_by_nothing():
    assert Caps(None, None).at(4096, 100) == (float("inf"), "nothing")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: level_figures(15), "hostmax_expect: vpu 15 is no level; use one of 0, 10, 20,"),
        (lambda: level_vpu("balancd"), "hostmax_expect: no level is named 'balancd', did you mean balanced?"),
        (lambda: shape_caps("BM.Standard.E4.12"), "no shape is named 'BM.Standard.E4.12', did you mean"),
        (lambda: shape_caps("VM.Standard3.Flex"), "VM.Standard3.Flex is flexible; give ocpus or network_gbps"),
        (lambda: volume_caps(1, 10, "ebs"), "no expectation profile is named 'ebs'"),
    ],
)
def test_a_name_that_is_not_published_is_refused(call, sentence):
    with pytest.raises(ExpectationError) as caught:
        call()
    assert sentence in str(caught.value)
