import type { DeviceKind } from '../../electron/core/ledger/footprint/device-kind.ts';
import { estimate, type Footprint } from '../../electron/core/ledger/footprint/estimate.ts';
import { DEFAULT_FLAGS, type LoadFlags } from '../../electron/core/ledger/footprint/flags.ts';
import type { GgufHeader, MetadataValue } from '../../electron/core/ledger/footprint/gguf-header.ts';
import { type GgufSpec, type GgufValue, tensorBytes } from './gguf-writer.ts';

export const MIB = 1_048_576;

/** The header that reading such a file gives, without a file. */
export function headerOfSpec(spec: GgufSpec, changes: Readonly<Record<string, GgufValue>> = {}): GgufHeader {
  const metadata: Record<string, MetadataValue> = { 'general.architecture': spec.architecture };
  const listLengths: Record<string, number> = {};
  for (const [key, value] of Object.entries({ ...spec.metadata, ...changes })) {
    const full = key.startsWith('.') ? `${spec.architecture}${key}` : key;
    metadata[full] = typeof value === 'object' && 'f32' in value ? value.f32 : value;
    if (Array.isArray(value)) listLengths[full] = value.length;
  }
  if (spec.tokens !== null) listLengths['tokenizer.ggml.tokens'] = spec.tokens ?? 312;
  const tensors = spec.tensors.map((tensor) => ({
    name: tensor.name,
    shape: tensor.shape,
    type: tensor.type ?? 0,
    bytes: tensorBytes(tensor),
  }));
  return {
    version: 3,
    architecture: spec.architecture,
    metadata,
    listLengths,
    tensors,
    fileBytes: tensors.reduce((sum, tensor) => sum + tensor.bytes, 0),
    hasWeights: true,
  };
}

/** A model that is its metadata alone. */
export function headerOfKeys(architecture: string, keys: Readonly<Record<string, GgufValue>>): GgufHeader {
  return headerOfSpec({ architecture, metadata: keys, tensors: [], tokens: null });
}

export function footprintOf(
  header: GgufHeader,
  changes: Partial<LoadFlags> = {},
  kind: DeviceKind = 'cuda',
): Footprint {
  return estimate(header, { ...DEFAULT_FLAGS, ...changes }, kind);
}
