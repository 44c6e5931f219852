import { ok, type Result } from '../../../../shared/errors.ts';
import type { Footprint } from '../../ledger/footprint/estimate.ts';
import type { DeskDevice, DeskWorld } from './desk-world.ts';

/** What an agent will take, before anything of it is loaded. */
export interface AgentSize {
  readonly contextTokens: number;
  readonly gpuLayers: number | null;
  readonly weightsBytes: number;
  readonly contextBytes: number;
  readonly overheadBytes: number;
}

/** By the file's header. Errors: `bad_input` about the file, `internal`. */
export async function sizeOfAgent(
  world: DeskWorld,
  device: DeskDevice,
  path: string,
  askedTokens: number | null,
): Promise<Result<AgentSize>> {
  // Larger contexts are for those who ask for them.
  const contextTokens = askedTokens ?? world.usualContextTokens();
  // Both at once, so that one reading of the header answers both.
  const [trained, usual] = await Promise.all([
    askedTokens === null ? estimated(world, device, path, null, null) : null,
    estimated(world, device, path, contextTokens, null),
  ]);
  if (!usual.ok) return usual;
  if (trained?.ok !== true || trained.value.contextTokens >= contextTokens)
    return ok(sizeOf(usual.value, contextTokens, null));
  return ok(sizeOf(trained.value, trained.value.contextTokens, null));
}

/**
 * The most layers with which it fits into so many bytes, its context and the engine's own included;
 * null: not one does, or memory is one for device and host, so that fewer layers take no less.
 */
export async function fittingSize(
  world: DeskWorld,
  device: DeskDevice,
  path: string,
  contextTokens: number,
  freeBytes: number,
): Promise<AgentSize | null> {
  if (device.unified) return null;
  const whole = await estimated(world, device, path, contextTokens, null);
  if (!whole.ok) return null;
  const counts = Array.from({ length: whole.value.layers }, (_, index) => whole.value.layers - index);
  const footprints = await Promise.all(
    counts.map((gpuLayers) => estimated(world, device, path, contextTokens, gpuLayers)),
  );
  for (const [index, footprint] of footprints.entries())
    if (footprint.ok && footprint.value.totalBytes <= freeBytes)
      return sizeOf(footprint.value, contextTokens, counts[index] ?? null);
  return null;
}

function estimated(
  world: DeskWorld,
  device: DeskDevice,
  path: string,
  contextTokens: number | null,
  gpuLayers: number | null,
): Promise<Result<Footprint>> {
  return world.estimate({ path, contextTokens, gpuLayers, kind: device.kind });
}

function sizeOf(footprint: Footprint, contextTokens: number, gpuLayers: number | null): AgentSize {
  const { weightsBytes, kvBytes, recurrentBytes, computeBytes, overheadBytes } = footprint;
  return {
    contextTokens,
    gpuLayers,
    weightsBytes,
    contextBytes: kvBytes + recurrentBytes + computeBytes,
    overheadBytes,
  };
}
