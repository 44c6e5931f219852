import { commandFlags } from './command-flags.ts';
import type { DeviceKind } from './device-kind.ts';
import type { LoadFlags } from './flags.ts';

/** A load as a backend tells of it. */
export interface LoadRequest {
  /** Where the command line names no model. */
  readonly modelPath: string | null;
  readonly args: readonly string[];
  /** Where the flags are known otherwise than from a command line: `args` is passed over. */
  readonly flags?: LoadFlags;
  readonly kind: DeviceKind;
  /** Of llama.cpp; null: not known. */
  readonly build: number | null;
}

export function requestFlags(
  request: Pick<LoadRequest, 'modelPath' | 'args' | 'flags' | 'build'>,
): LoadFlags {
  const flags = request.flags ?? commandFlags(request.args);
  return { ...flags, modelPath: flags.modelPath ?? request.modelPath, build: request.build };
}
