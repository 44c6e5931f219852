/**
 * How ggml packs numbers: bytes per block of elements (ggml/src/ggml-common.h and the type table of
 * ggml.c). A cache row or a tensor of `n` elements takes `n / elements × bytes`.
 */
export interface GgmlType {
  /** ggml's number. */
  readonly id: number;
  readonly name: string;
  readonly elements: number;
  readonly bytes: number;
}

const TYPES: ReadonlyMap<number, GgmlType> = new Map(
  (
    [
      [0, 'f32', 1, 4],
      [1, 'f16', 1, 2],
      [2, 'q4_0', 32, 18],
      [3, 'q4_1', 32, 20],
      [6, 'q5_0', 32, 22],
      [7, 'q5_1', 32, 24],
      [8, 'q8_0', 32, 34],
      [9, 'q8_1', 32, 36],
      [10, 'q2_k', 256, 84],
      [11, 'q3_k', 256, 110],
      [12, 'q4_k', 256, 144],
      [13, 'q5_k', 256, 176],
      [14, 'q6_k', 256, 210],
      [15, 'q8_k', 256, 292],
      [16, 'iq2_xxs', 256, 66],
      [17, 'iq2_xs', 256, 74],
      [18, 'iq3_xxs', 256, 98],
      [19, 'iq1_s', 256, 50],
      [20, 'iq4_nl', 32, 18],
      [21, 'iq3_s', 256, 110],
      [22, 'iq2_s', 256, 82],
      [23, 'iq4_xs', 256, 136],
      [24, 'i8', 1, 1],
      [25, 'i16', 1, 2],
      [26, 'i32', 1, 4],
      [27, 'i64', 1, 8],
      [28, 'f64', 1, 8],
      [29, 'iq1_m', 256, 56],
      [30, 'bf16', 1, 2],
      [34, 'tq1_0', 256, 54],
      [35, 'tq2_0', 256, 66],
      [39, 'mxfp4', 32, 17],
      [40, 'nvfp4', 64, 36],
      [41, 'q1_0', 128, 18],
      // ik_llama.cpp's.
      [133, 'q6_0', 32, 26],
    ] as const
  ).map(([id, name, elements, bytes]) => [id, { id, name, elements, bytes }]),
);

const BY_NAME: ReadonlyMap<string, GgmlType> = new Map([...TYPES.values()].map((type) => [type.name, type]));

/** null: a type of a newer llama.cpp or of a fork. */
export function ggmlType(id: number): GgmlType | null {
  return TYPES.get(id) ?? null;
}

/** By the name that `--cache-type-k` takes; null: not known. */
export function ggmlTypeNamed(name: string): GgmlType | null {
  return BY_NAME.get(name.toLowerCase()) ?? null;
}

/** Bytes of that many elements in rows that are whole blocks. */
export function packedBytes(type: GgmlType, elements: number): number {
  return Math.ceil(elements / type.elements) * type.bytes;
}
