"""Clips that differ in how their frames refer to each other: one for each habit of an encoder.

They show a moving test picture with noise, so that a frame decoded from a wrong reference can't
look right by chance.
"""

from __future__ import annotations

from tests.corpus import Clip, Make, encoded, remuxed

MOVING = "testsrc2=s=160x96:r=30:d=1.7,noise=alls=12:allf=t"
AOM = "-c:v libaom-av1 -cpu-used 8 -crf 30"
SVT = "-c:v libsvtav1 -preset 10 -crf 30"
RAV1E = "-c:v librav1e -speed 10 -qp 80"
X264 = "-c:v libx264 -crf 20"
X265 = "-c:v libx265 -x265-params log-level=error"
KVAZAAR = "-c:v libkvazaar -kvazaar-params preset=ultrafast"
VP9 = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8"
VP8 = "-c:v libvpx -deadline realtime -cpu-used 8"


def _moving(options: str) -> Make:
    return encoded(options, source=MOVING)


STRUCTURES: tuple[Clip, ...] = (
    # AV1: hidden frames, shown later.
    Clip("aom_slow.mp4", "libaom's hidden frames at a low speed",
         _moving("-c:v libaom-av1 -cpu-used 5 -crf 40 -g 30 -lag-in-frames 19")),
    Clip("aom_far_sight.mp4", "libaom looking 35 frames ahead",
         _moving(f"{AOM} -g 60 -lag-in-frames 35")),
    Clip("aom_realtime.mp4", "libaom for video calls, with no hidden frames",
         _moving(f"{AOM} -usage realtime -g 60")),
    Clip("aom_all_intra.mp4", "libaom with key frames only", _moving(f"{AOM} -usage allintra")),
    Clip("aom_error_resilient.mp4", "AV1 with frame numbers and error resilient headers",
         _moving(f"{AOM} -g 60 -error-resilience default -aom-params error-resilient=1")),
    Clip("aom_no_hints.mp4", "AV1 without order hints",
         _moving(f"{AOM} -g 60 -aom-params enable-order-hint=0")),
    Clip("aom_reduced_references.mp4", "AV1 with a reduced set of references",
         _moving(f"{AOM} -g 60 -enable-reduced-reference-set 1")),
    Clip("aom_decoder_model.mp4", "AV1 with a decoder model's times in each header",
         _moving(f"{AOM} -g 30 -aom-params timing-info=model")),
    Clip("aom_grain.mp4", "AV1 with film grain from a table",
         _moving(f"{AOM} -g 60 -aom-params film-grain-test=3")),
    Clip("aom_tiles.mp4", "AV1 in two tiles", _moving(f"{AOM} -g 60 -tile-columns 1")),
    Clip("aom_short_gops.mkv", "AV1 in Matroska, hidden frames in each short GOP",
         _moving(f"{AOM} -g 12")),
    Clip("svt_preset_6.mp4", "SVT-AV1 at a slower preset",
         _moving("-c:v libsvtav1 -preset 6 -crf 30 -g 40")),
    Clip("svt_low_delay.mp4", "SVT-AV1 with low delay",
         _moving(f"{SVT} -g 40 -svtav1-params pred-struct=1")),
    Clip("svt_all_intra.mp4", "SVT-AV1 with key frames only",
         _moving(f"{SVT} -g 40 -svtav1-params pred-struct=0")),
    Clip("svt_overlays.mp4", "SVT-AV1 with overlays on its hidden frames",
         _moving("-c:v libsvtav1 -preset 8 -crf 30 -g 40 -svtav1-params enable-overlays=1")),
    Clip("svt_two_levels.mp4", "SVT-AV1 with a pyramid of two levels",
         _moving(f"{SVT} -g 40 -svtav1-params hierarchical-levels=2")),
    Clip("svt_five_levels.mp4", "SVT-AV1 with a pyramid of five levels",
         _moving(f"{SVT} -g 64 -svtav1-params hierarchical-levels=5")),
    Clip("svt_grain.mp4", "SVT-AV1 with film grain", _moving(f"{SVT} -g 40 -svtav1-params "
                                                            "film-grain=20")),
    Clip("svt_switch_frames.mp4", "AV1 with switch frames",
         _moving(f"{SVT} -g 1000 -svtav1-params sframe-dist=8:sframe-mode=1:pred-struct=1")),
    Clip("svt_intra_only.mp4", "AV1 with hidden intra-only frames in place of key frames",
         _moving(f"{SVT} -g 16 -svtav1-params irefresh-type=1")),
    Clip("svt_superres.mp4", "AV1 coded at reduced widths",
         _moving(f"{SVT} -g 40 -svtav1-params superres-mode=2")),
    Clip("rav1e.mp4", "rav1e, which reorders", _moving(f"{RAV1E} -g 30")),
    Clip("rav1e_low_latency.mp4", "rav1e without reordering",
         _moving(f"{RAV1E} -g 30 -rav1e-params low_latency=true")),
    Clip("rav1e_error_resilient.mp4", "rav1e with error resilient headers",
         _moving(f"{RAV1E} -g 30 -rav1e-params error_resilient=true")),
    Clip("rav1e_switch_frames.mp4", "rav1e with switch frames",
         _moving(f"{RAV1E} -g 60 -rav1e-params switch_frame_interval=8:low_latency=true")),
    # H.264.
    Clip("x264_long_leading.mp4", "H.264, open GOPs with long runs of leading pictures",
         _moving(f"{X264} -g 24 -x264-params "
                 "bframes=16:b-adapt=0:b-pyramid=normal:open-gop=1:scenecut=0")),
    Clip("x264_two_pyramid.mp4", "H.264, a pyramid of 2 B-frames",
         _moving(f"{X264} -g 40 -x264-params bframes=2:b-adapt=0:b-pyramid=normal")),
    Clip("x264_four_pyramid.mp4", "H.264, a strict pyramid of 4 B-frames",
         _moving(f"{X264} -g 40 -x264-params bframes=4:b-adapt=0:b-pyramid=strict")),
    Clip("x264_many_references.mp4", "H.264, 8 references reordered and marked unused",
         _moving(f"{X264} -g 40 -x264-params bframes=8:b-adapt=0:b-pyramid=normal:ref=8")),
    Clip("x264_weights.mp4", "H.264 with weighted prediction",
         _moving(f"{X264} -g 40 -x264-params weightp=2:weightb=1:ref=5:bframes=3")),
    Clip("x264_temporal_direct.mp4", "H.264 whose B-frames take their vectors from others",
         _moving(f"{X264} -g 40 -x264-params direct=temporal:bframes=5:b-adapt=0")),
    Clip("x264_baseline.mp4", "H.264 baseline, whose display order is its decoding order",
         _moving(f"{X264} -g 40 -profile:v baseline")),
    Clip("x264_slices.mp4", "H.264 in four slices",
         _moving(f"{X264} -g 40 -x264-params slices=4:bframes=3")),
    Clip("x264_repeated_headers.mp4", "H.264 with delimiters and headers before each key frame",
         _moving(f"{X264} -g 20 -x264-params aud=1:repeat-headers=1:bframes=3")),
    Clip("x264_fields.mp4", "H.264 that chooses fields or frames per block (MBAFF)",
         _moving(f"{X264} -g 24 -bf 3 -flags +ilme+ildct -x264-params interlaced=1")),
    Clip("x264_refresh.mkv", "H.264 that refreshes by columns, in Matroska",
         _moving(f"{X264} -g 24 -bf 2 -x264-params intra-refresh=1")),
    Clip("x264_pyramid.mkv", "H.264 with a B pyramid, in Matroska",
         _moving(f"{X264} -g 24 -bf 5 -x264-params b-pyramid=normal")),
    Clip("openh264.mp4", "OpenH264", _moving("-c:v libopenh264 -g 30")),
    # HEVC.
    Clip("x265_three_layers.mp4", "HEVC with three temporal layers",
         _moving(f"{X265}:keyint=32:temporal-layers=3:bframes=7:b-pyramid=1:b-adapt=0")),
    Clip("x265_five_layers.mp4", "HEVC with five temporal layers, and times that the muxer bent: "
         "two pictures of each pyramid have each other's",
         _moving(f"{X265}:keyint=32:temporal-layers=5:bframes=15:b-pyramid=1:b-adapt=0")),
    Clip("x265_pyramid.mp4", "HEVC, a pyramid of 8 B-frames",
         _moving(f"{X265}:keyint=48:bframes=8:b-pyramid=1:b-adapt=0")),
    Clip("x265_no_pyramid.mp4", "HEVC, 4 B-frames that nothing refers to",
         _moving(f"{X265}:keyint=48:bframes=4:b-pyramid=0")),
    Clip("x265_long_leading.mp4", "HEVC, open GOPs with long runs of leading pictures",
         _moving(f"{X265}:keyint=20:min-keyint=20:open-gop=1:bframes=15:b-adapt=0")),
    Clip("x265_decodable_leading.mp4", "HEVC with leading pictures that can be decoded (RADL)",
         _moving(f"{X265}:keyint=20:min-keyint=20:open-gop=0:radl=3:bframes=5:b-adapt=0")),
    Clip("x265_weights.mp4", "HEVC with weighted prediction",
         _moving(f"{X265}:keyint=48:weightp=1:weightb=1:ref=6")),
    Clip("x265_refresh.mp4", "HEVC that refreshes by columns",
         _moving(f"{X265}:keyint=24:intra-refresh=1")),
    Clip("x265_slices.mp4", "HEVC in two slices, headers before each key frame",
         _moving(f"{X265}:keyint=24:slices=2:repeat-headers=1:aud=1")),
    Clip("x265_open_gop.mkv", "HEVC with open GOPs in Matroska",
         _moving(f"{X265}:keyint=20:min-keyint=20:open-gop=1")),
    Clip("x265_in_band.mp4", "HEVC whose parameter sets are in the stream too (hev1)",
         _moving(f"{X265}:keyint=24 -flags -global_header -tag:v hev1")),
    Clip("kvazaar_random_access.mp4", "Kvazaar's pyramid of 16, open GOPs",
         _moving(f"{KVAZAAR},period=32,gop=16,open-gop=1")),
    Clip("kvazaar_low_delay.mp4", "Kvazaar with low delay",
         _moving(f"{KVAZAAR},period=16,gop=lp-g4d3t1")),
    # VP8 and VP9.
    Clip("vp9_alt_refs.webm", "VP9 with several levels of hidden frames",
         _moving("-c:v libvpx-vp9 -g 60 -deadline good -cpu-used 5 -auto-alt-ref 6 "
                 "-lag-in-frames 25")),
    Clip("vp9_error_resilient.webm", "VP9 that keeps no contexts",
         _moving(f"{VP9} -g 60 -error-resilient default")),
    Clip("vp9_layers.webm", "VP9 with three temporal layers",
         _moving(f"{VP9} -g 60 -error-resilient default -ts-parameters ts_number_layers=3:"
                 "ts_target_bitrate=100,200,300:ts_rate_decimator=4,2,1:ts_periodicity=4:"
                 "ts_layer_id=0,2,1,2:ts_layering_mode=3")),
    Clip("vp9_lossless.webm", "lossless VP9", _moving(f"{VP9} -g 60 -lossless 1")),
    Clip("vp8_realtime.webm", "VP8 with no hidden frames",
         _moving(f"{VP8} -g 30 -auto-alt-ref 0")),
    Clip("vp8_layers.webm", "VP8 with two temporal layers",
         _moving(f"{VP8} -g 30 -ts-parameters ts_number_layers=2:ts_target_bitrate=100,200:"
                 "ts_rate_decimator=2,1:ts_periodicity=2:ts_layer_id=0,1:ts_layering_mode=2")),
    Clip("x264_trimmed.mkv", "H.264 trimmed by stream copy, in Matroska",
         remuxed("b_frames.mp4", before="-ss 0.7")),
)  # fmt: skip
