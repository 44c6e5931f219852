import { commandFlags } from './command-flags.ts';
import type { DeviceKind } from './device-kind.ts';
import type { LoadFlags } from './flags.ts';

/** A load as a backend tells of it. */
export interface LoadRequest {
  /** Where the command line names no model. */
  readonly modelPath: string | null;
  readonly args: readonly string[];
  readonly kind: DeviceKind;
  /** Of llama.cpp; null: not known. */
  readonly build: number | null;
}

export function requestFlags(request: Pick<LoadRequest, 'modelPath' | 'args' | 'build'>): LoadFlags {
  const flags = commandFlags(request.args);
  return { ...flags, modelPath: flags.modelPath ?? request.modelPath, build: request.build };
}
