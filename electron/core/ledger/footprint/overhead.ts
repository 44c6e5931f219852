import type { ModelFacts } from './architecture.ts';
import { widest } from './compute.ts';
import type { DeviceKind } from './device-kind.ts';
import type { LoadFlags } from './flags.ts';
import { ggmlTypeNamed } from './ggml-types.ts';
import type { CacheShape } from './kv-cache.ts';

const MIB = 1_048_576;

/**
 * What a process holds on each device that no printed line names: the driver's context and its kernels.
 * Seen: CUDA 150 to 460 MiB, HIP about 400 a process. The first prompt may add some 500 more.
 */
const CONTEXT_BYTES: Readonly<Record<DeviceKind, number>> = {
  cuda: 300 * MIB,
  hip: 400 * MIB,
  vulkan: 150 * MIB,
  sycl: 300 * MIB,
  metal: 50 * MIB,
  cpu: 50 * MIB,
};

export function overheadBytes(
  facts: ModelFacts,
  flags: LoadFlags,
  shape: CacheShape,
  kind: DeviceKind,
): number {
  return CONTEXT_BYTES[kind] * flags.devices + unpackedBytes(facts, flags, shape, kind);
}

/**
 * CUDA's and HIP's flash attention unpacks a whole layer's quantised cache to f16 for a long prompt, in
 * memory of their own beside the buffers they print: seen as 1.30 against 0.31 GiB for 262 144 tokens of
 * four heads of 256.
 */
function unpackedBytes(facts: ModelFacts, flags: LoadFlags, shape: CacheShape, kind: DeviceKind): number {
  if (flags.flashAttention === 'off' || (kind !== 'cuda' && kind !== 'hip')) return 0;
  const packed = (name: string): number => ((ggmlTypeNamed(name)?.elements ?? 1) > 1 ? 2 : 0);
  return widest(facts, (layer) => {
    if (!layer.ownsCache) return 0;
    const cells = (layer.windowed ? shape.windowCells : shape.cells) * shape.streams;
    return (
      cells * (layer.keyElements * packed(flags.cacheTypeK) + layer.valueElements * packed(flags.cacheTypeV))
    );
  });
}
