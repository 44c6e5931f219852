import { DEFAULT_FLAGS, type LoadFlags, slotsOf, type TensorOverride } from './flags.ts';
import { ownEntry } from './own-entry.ts';

type Change = (flags: LoadFlags, value: string) => LoadFlags;

const DEFAULT_DRAFT_TOKENS = 3;
/** Kinds of drafting that go back on a recurrent state token by token (common.h, `need_n_rs_seq`). */
const ROLLING_BACK = new Set(['draft-mtp', 'draft-eagle3', 'draft-dflash', 'draft-dspark']);
const ALL_LAYERS = Number.MAX_SAFE_INTEGER;

/** llama-server's flags that take a value (llama-server(1), common/arg.cpp), and ik_llama.cpp's. */
const WITH_VALUE: Readonly<Record<string, Change>> = {
  '-m': (flags, value) => ({ ...flags, modelPath: value }),
  '-mm': (flags, value) => ({ ...flags, projectorPath: value }),
  '-md': (flags, value) => ({ ...flags, draftPath: value }),
  '--lora': (flags, value) => ({ ...flags, adapterPaths: [...flags.adapterPaths, ...value.split(',')] }),
  '--lora-scaled': (flags, value) => ({
    ...flags,
    adapterPaths: [...flags.adapterPaths, ...value.split(',').map((one) => one.replace(/:[\d.+-]+$/, ''))],
  }),
  '-c': (flags, value) => ({ ...flags, contextTokens: count(value, flags.contextTokens, 1) }),
  '-np': (flags, value) => ({ ...flags, slots: count(value, null, 1) }),
  '-b': (flags, value) => ({ ...flags, batch: count(value, flags.batch, 1) ?? flags.batch }),
  '-ub': (flags, value) => ({ ...flags, ubatch: count(value, flags.ubatch, 1) ?? flags.ubatch }),
  '-ctk': (flags, value) => ({ ...flags, cacheTypeK: value.toLowerCase() }),
  '-ctv': (flags, value) => ({ ...flags, cacheTypeV: value.toLowerCase() }),
  '-fa': (flags, value) => ({ ...flags, flashAttention: flashAttention(value) }),
  '-ngl': (flags, value) => ({ ...flags, gpuLayers: layerCount(value) }),
  '-ncmoe': (flags, value) => ({ ...flags, cpuExpertLayers: count(value, 0, 0) ?? 0 }),
  '--moe-cache-mib': (flags, value) => ({
    ...flags,
    expertCacheBytes: (count(value, 0, 0) ?? 0) * 1_048_576,
  }),
  '-ncffn': (flags, value) => ({ ...flags, cpuFeedForwardLayers: count(value, 0, 0) ?? 0 }),
  '-ot': (flags, value) => ({ ...flags, overrides: [...flags.overrides, ...overridesOf(value)] }),
  '-fit': (flags, value) => ({ ...flags, fit: !/^(?:off|0|false)$/i.test(value) }),
  '-fitt': (flags, value) => ({ ...flags, fitMarginBytes: marginOf(value) ?? flags.fitMarginBytes }),
  '-mla': (flags, value) => ({ ...flags, latentCache: value !== '0' }),
  '-ts': (flags, value) => ({ ...flags, devices: Math.max(flags.devices, shares(value)) }),
  '-dev': (flags, value) => device(flags, value),
  '-ctkd': (flags, value) => ({ ...flags, draft: { ...flags.draft, cacheTypeK: value.toLowerCase() } }),
  '-ctvd': (flags, value) => ({ ...flags, draft: { ...flags.draft, cacheTypeV: value.toLowerCase() } }),
  '-ngld': (flags, value) => ({ ...flags, draft: { ...flags.draft, gpuLayers: layerCount(value) } }),
  '-ncmoed': (flags, value) => ({
    ...flags,
    draft: { ...flags.draft, cpuExpertLayers: count(value, 0, 0) ?? 0 },
  }),
  '-otd': (flags, value) => ({
    ...flags,
    draft: { ...flags.draft, overrides: [...flags.draft.overrides, ...overridesOf(value)] },
  }),
  '-devd': (flags, value) =>
    value === 'none' ? { ...flags, draft: { ...flags.draft, gpuLayers: 0 } } : flags,
  '-mmdev': (flags, value) => (value === 'none' ? { ...flags, projectorOnDevice: false } : flags),
  '--spec-draft-n-ubatch': (flags, value) => ({
    ...flags,
    draft: { ...flags.draft, ubatch: count(value, null, 1) },
  }),
  '--spec-type': (flags, value) => {
    const types = value.split(',');
    return {
      ...flags,
      nextTokenDraft: types.includes('draft-mtp') ? DEFAULT_DRAFT_TOKENS : 0,
      rollbackTokens: types.some((type) => ROLLING_BACK.has(type)) ? DEFAULT_DRAFT_TOKENS : 0,
    };
  },
};

/** Sizes the context of all slots together, where none is asked for. */
const PER_SLOT = '--kv-unified-per-slot';

/** `none` uses one device, whatever else names several. */
const SPLIT_MODE = '-sm';

/** The longest that a draft may be; it counts only where next-token layers draft. */
const DRAFT_TOKENS = new Set(['--spec-draft-n-max', '--draft-max', '--draft', '--draft-n']);

const ALONE: Readonly<Record<string, (flags: LoadFlags) => LoadFlags>> = {
  '--swa-full': (flags) => ({ ...flags, fullWindowCache: true }),
  '--kv-unified': (flags) => ({ ...flags, unified: true }),
  '--no-kv-unified': (flags) => ({ ...flags, unified: false }),
  '--kv-offload': (flags) => ({ ...flags, cacheOnDevice: true }),
  '--no-kv-offload': (flags) => ({ ...flags, cacheOnDevice: false }),
  '--no-mmproj': (flags) => ({ ...flags, projectorPath: null }),
  '--mmproj-offload': (flags) => ({ ...flags, projectorOnDevice: true }),
  '--no-mmproj-offload': (flags) => ({ ...flags, projectorOnDevice: false }),
  '-cmoed': (flags) => ({ ...flags, draft: { ...flags.draft, cpuExpertLayers: ALL_LAYERS } }),
  '--cpu-moe': (flags) => ({ ...flags, cpuExpertLayers: ALL_LAYERS }),
};

/** Other spellings, as far as they are one. */
const SPELLINGS: Readonly<Record<string, string>> = {
  '--model': '-m',
  '--mmproj': '-mm',
  '--model-draft': '-md',
  '--spec-draft-model': '-md',
  '--ctx-size': '-c',
  '--parallel': '-np',
  '--batch-size': '-b',
  '--ubatch-size': '-ub',
  '--cache-type-k': '-ctk',
  '--cache-type-v': '-ctv',
  '--flash-attn': '-fa',
  '--gpu-layers': '-ngl',
  '--n-gpu-layers': '-ngl',
  '--n-cpu-moe': '-ncmoe',
  '--n-cpu-ffn': '-ncffn',
  '--override-tensor': '-ot',
  '--fit': '-fit',
  '--fit-target': '-fitt',
  '--mla-use': '-mla',
  '--tensor-split': '-ts',
  '--device': '-dev',
  '--split-mode': '-sm',
  '--cache-type-k-draft': '-ctkd',
  '--spec-draft-type-k': '-ctkd',
  '--cache-type-v-draft': '-ctvd',
  '--spec-draft-type-v': '-ctvd',
  '--gpu-layers-draft': '-ngld',
  '--n-gpu-layers-draft': '-ngld',
  '--spec-draft-ngl': '-ngld',
  '--override-tensor-draft': '-otd',
  '--spec-draft-override-tensor': '-otd',
  '--n-cpu-moe-draft': '-ncmoed',
  '--spec-draft-n-cpu-moe': '-ncmoed',
  '--spec-draft-ncmoe': '-ncmoed',
  '--cpu-moe-draft': '-cmoed',
  '--spec-draft-cpu-moe': '-cmoed',
  '--device-draft': '-devd',
  '--spec-draft-device': '-devd',
  '--mmproj-device': '-mmdev',
  '-kvu': '--kv-unified',
  '-no-kvu': '--no-kv-unified',
  '-kvo': '--kv-offload',
  '-nkvo': '--no-kv-offload',
  '--no-mmproj-auto': '--no-mmproj',
  '-cmoe': '--cpu-moe',
};

/** A llama-server command line, with or without the program's name; unknown flags are passed over. */
export function commandFlags(args: readonly string[]): LoadFlags {
  let flags = DEFAULT_FLAGS;
  let draftTokens: number | null = null;
  let perSlot: number | null = null;
  let isSplit = true;
  for (let index = 0; index < args.length; index++) {
    const [name, given] = nameAndValue(args[index] ?? '');
    const next = given ?? args[index + 1] ?? '';
    const change = ownEntry(WITH_VALUE, name);
    const alone = ownEntry(ALONE, name);
    if (alone !== undefined) {
      flags = alone(flags);
    } else if (name === '-fa' && given === null && !/^(?:on|off|auto|[01]|true|false)$/i.test(next)) {
      // Older builds take it without a value.
      flags = { ...flags, flashAttention: 'on' };
    } else if (change !== undefined) {
      flags = change(flags, next);
      if (given === null) index++;
    } else if (name === SPLIT_MODE) {
      isSplit = next !== 'none';
      if (given === null) index++;
    } else if (name === PER_SLOT) {
      perSlot = count(next, perSlot, 1);
      if (given === null) index++;
    } else if (DRAFT_TOKENS.has(name)) {
      draftTokens = count(next, draftTokens, 0);
      if (given === null) index++;
    }
  }
  if (!isSplit) flags = { ...flags, devices: Math.min(1, flags.devices) };
  if (draftTokens !== null) {
    const asked = draftTokens;
    const each = (kept: number): number => (kept > 0 ? asked : 0);
    flags = {
      ...flags,
      nextTokenDraft: each(flags.nextTokenDraft),
      rollbackTokens: each(flags.rollbackTokens),
    };
  }
  if (perSlot !== null && flags.contextTokens === null)
    flags = { ...flags, contextTokens: perSlot * slotsOf(flags).sequences };
  return flags;
}

export interface FlagName {
  /** As a command line has it. */
  readonly flag: string;
  readonly takes: 'value' | 'nothing' | 'unknown';
}

/** A flag that is named without its dashes, as presets do. */
export function flagOf(name: string): FlagName {
  for (const flag of [`-${name}`, `--${name}`]) {
    const known = ownEntry(SPELLINGS, flag) ?? flag;
    if (known === '--metrics' || ownEntry(ALONE, known) !== undefined)
      return { flag: known, takes: 'nothing' };
    const takesValue =
      ownEntry(WITH_VALUE, known) ?? (DRAFT_TOKENS.has(known) || known === PER_SLOT || known === SPLIT_MODE);
    if (takesValue) return { flag, takes: 'value' };
  }
  return { flag: `--${name}`, takes: 'unknown' };
}

function nameAndValue(arg: string): readonly [string, string | null] {
  const equals = arg.startsWith('--') ? arg.indexOf('=') : -1;
  const name = equals < 0 ? arg : arg.slice(0, equals);
  return [ownEntry(SPELLINGS, name) ?? name, equals < 0 ? null : arg.slice(equals + 1)];
}

/** 0 and less stand for the engine's own choice where 0 is not a choice. */
function count(value: string, otherwise: number | null, smallest: number): number | null {
  const number = /^-?\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isNaN(number)) return otherwise;
  return number < smallest ? null : number;
}

/** `auto` and `all` are all: what a fit would leave out is not known before. */
function layerCount(value: string): number | null {
  return count(value, null, 0);
}

function flashAttention(value: string): LoadFlags['flashAttention'] {
  if (/^(?:on|1|true)$/i.test(value)) return 'on';
  return /^(?:off|0|false)$/i.test(value) ? 'off' : 'auto';
}

function overridesOf(value: string): readonly TensorOverride[] {
  return value.split(',').flatMap((one) => {
    const equals = one.lastIndexOf('=');
    return equals <= 0 ? [] : [{ pattern: one.slice(0, equals), buffer: one.slice(equals + 1) }];
  });
}

/** MiB, one for all devices or one each: what is left free at least. */
function marginOf(value: string): number | null {
  const margins = value.split(',').map(Number);
  const least = Math.min(...margins);
  return value.trim() !== '' && Number.isSafeInteger(least) && least >= 0 ? least * 1_048_576 : null;
}

function shares(value: string): number {
  return Math.max(1, value.split(/[,/]/).filter((share) => Number(share) > 0).length);
}

function device(flags: LoadFlags, value: string): LoadFlags {
  if (value === 'none') return { ...flags, gpuLayers: 0, devices: 0 };
  return { ...flags, devices: Math.max(1, value.split(',').filter(Boolean).length) };
}
