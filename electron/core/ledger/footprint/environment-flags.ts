import { ownEntry } from './own-entry.ts';

/**
 * llama-server's environment variables that change what a model takes (llama-server(1); `set_env` in
 * common/arg.cpp), as the flags they stand for. Without the `LLAMA_ARG_` before each.
 */
const WITH_VALUE: Readonly<Record<string, string>> = {
  MODEL: '--model',
  HF_REPO: '--hf-repo',
  HF_FILE: '--hf-file',
  MMPROJ: '--mmproj',
  CTX_SIZE: '--ctx-size',
  KV_UNIFIED_PER_SLOT: '--kv-unified-per-slot',
  N_PARALLEL: '--parallel',
  BATCH: '--batch-size',
  UBATCH: '--ubatch-size',
  CACHE_TYPE_K: '--cache-type-k',
  CACHE_TYPE_V: '--cache-type-v',
  FLASH_ATTN: '--flash-attn',
  N_GPU_LAYERS: '--gpu-layers',
  N_CPU_MOE: '--n-cpu-moe',
  MOE_CACHE_MIB: '--moe-cache-mib',
  N_CPU_FFN: '--n-cpu-ffn',
  OVERRIDE_TENSOR: '--override-tensor',
  DEVICE: '--device',
  SPLIT_MODE: '--split-mode',
  TENSOR_SPLIT: '--tensor-split',
  FIT: '--fit',
  FIT_TARGET: '--fit-target',
  SPEC_DRAFT_MODEL: '--spec-draft-model',
  SPEC_DRAFT_HF_REPO: '--spec-draft-hf',
  MODEL_DRAFT: '--spec-draft-model',
  SPEC_DRAFT_CACHE_TYPE_K: '--spec-draft-type-k',
  SPEC_DRAFT_CACHE_TYPE_V: '--spec-draft-type-v',
  N_GPU_LAYERS_DRAFT: '--spec-draft-ngl',
  SPEC_TYPE: '--spec-type',
  SPEC_DRAFT_N_MAX: '--spec-draft-n-max',
  DRAFT_MAX: '--draft-max',
};

/** `LLAMA_ARG_NO_…` turns each of them round. */
const ON_OR_OFF: Readonly<Record<string, readonly [on: string | null, off: string | null]>> = {
  SWA_FULL: ['--swa-full', null],
  KV_UNIFIED: ['--kv-unified', '--no-kv-unified'],
  KV_OFFLOAD: ['--kv-offload', '--no-kv-offload'],
  MMPROJ_AUTO: [null, '--no-mmproj'],
  MMPROJ_OFFLOAD: [null, '--no-mmproj-offload'],
  CPU_MOE: ['--cpu-moe', null],
};

const PREFIX = 'LLAMA_ARG_';
/** A command line may name as many files as it likes; an environment is not ours to copy whole. */
const LONGEST = 4_096;

/** Flags for these variables, in llama-server's order of them; others, and empty ones, are passed over. */
export function environmentArgs(
  variables: Iterable<readonly [name: string, value: string]>,
): readonly string[] {
  return [...variables].flatMap(([name, value]) => argsFor(name, value));
}

/** One of our variables in `NAME=value`, as `/proc/<pid>/environ` has them; the rest of it is nobody's business. */
export function memoryVariables(environ: string): readonly (readonly [string, string])[] {
  return environ.split('\0').flatMap((entry) => {
    const equals = entry.indexOf('=');
    if (equals < 0 || !entry.startsWith(PREFIX) || entry.length > LONGEST) return [];
    const [name, value] = [entry.slice(0, equals), entry.slice(equals + 1)];
    return argsFor(name, value).length > 0 ? [[name, value] as const] : [];
  });
}

/** The command line with what its environment adds: a flag that is on both counts as the command line has it. */
export function withEnvironment(
  args: readonly string[],
  variables: Iterable<readonly [name: string, value: string]>,
): readonly string[] {
  const more = environmentArgs(variables);
  if (more.length === 0) return args;
  const [program = '', ...rest] = args;
  return program.startsWith('-') ? [...more, ...args] : [program, ...more, ...rest];
}

function argsFor(name: string, value: string): readonly string[] {
  if (!name.startsWith(PREFIX) || value === '') return [];
  const key = name.slice(PREFIX.length);
  const flag = ownEntry(WITH_VALUE, key);
  if (flag !== undefined) return [flag, value];
  const isNegative = key.startsWith('NO_');
  const pair = ownEntry(ON_OR_OFF, isNegative ? key.slice(3) : key);
  if (pair === undefined) return [];
  // A negative one counts by being there, whatever it says.
  const wants = isNegative ? false : meaningOf(value);
  const chosen = wants === null ? null : pair[wants ? 0 : 1];
  return chosen === null ? [] : [chosen];
}

/** null: neither of llama-server's words for yes and no. */
function meaningOf(value: string): boolean | null {
  if (/^(?:on|enabled|true|1)$/.test(value)) return true;
  return /^(?:off|disabled|false|0)$/.test(value) ? false : null;
}
