import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DEFAULT_FLAGS, type LoadFlags } from '../../electron/core/ledger/footprint/flags.ts';
import type { GgufHeader, MetadataValue } from '../../electron/core/ledger/footprint/gguf-header.ts';

/** Logged loads that may lie beside the repository. */
const FOLDER = fileURLToPath(new URL('../../../shared/evidence/kv-measured/', import.meta.url));

/** Empty where there are none. */
export function measuredFiles(): readonly string[] {
  return existsSync(FOLDER) ? readdirSync(FOLDER).sort() : [];
}

type Numbers = Readonly<Record<string, unknown>>;

/** One logged load: what the model is, how it was started, what was measured. */
export interface MeasuredCase {
  readonly file: string;
  readonly model: string;
  readonly engine: string;
  readonly params: Numbers;
  readonly flags: Numbers;
  readonly measured: Numbers & { readonly 'kv_mib_by_(parallel,ctx)'?: Readonly<Record<string, number>> };
  /** Sum over devices; the host's left out. null: not measured, or it failed. */
  readonly deviceComputeMib: number | null;
  readonly devices: number;
}

export function measuredCase(file: string): MeasuredCase {
  const json = JSON.parse(readFileSync(`${FOLDER}${file}`, 'utf8'));
  const measured = json.measured ?? {};
  const rows: readonly (readonly [string, number])[] = Array.isArray(measured.compute_mib)
    ? measured.compute_mib
    : [];
  const onDevices = rows.filter(([name, mib]) => !/host|failed/i.test(name) && typeof mib === 'number');
  return {
    file,
    model: json.model ?? '',
    engine: `${json.engine} ${json.note ?? ''}`,
    params: json.arch_params ?? {},
    flags: json.flags ?? {},
    measured,
    deviceComputeMib: onDevices.length === 0 ? null : onDevices.reduce((sum, [, mib]) => sum + mib, 0),
    devices: Math.max(1, onDevices.length),
  };
}

/** Forks have graphs of their own. */
export function isMainline(given: MeasuredCase): boolean {
  return !/\bfork\b|ik_llama|turboquant/i.test(given.engine);
}

/** null: not measured, or a case without the facts that make it up: how many layers, and how wide a row. */
export function expectedKvMib(given: MeasuredCase): number | null {
  const { params } = given;
  const own = given.measured.kv_mib;
  const layers = number(params, 'n_layer', 'n_layer_global_with_cache');
  const known = PUBLIC_FACTS.some(([pattern]) => pattern.test(given.model));
  if (typeof own !== 'number' || layers === null || !(known || tellsRows(params))) return null;
  const draft = given.measured.kv_draft_mib;
  return own + (typeof draft === 'number' ? draft : 0);
}

/** Whether the width of a row of keys can be told. */
function tellsRows(params: Numbers): boolean {
  const heads = number(params, 'n_head_kv') ?? list(params, 'n_head_kv');
  const wide = number(params, 'n_embd_head_k', 'n_embd') !== null;
  return number(params, ...ROWS, 'kv_lora_rank', 'global_k_gqa') !== null || (heads !== null && wide);
}

const ROWS = ['n_embd_k_gqa', 'n_embd_k_gqa_inferred'] as const;

/** What a log does not print of models whose files are public. */
const PUBLIC_FACTS: readonly (readonly [RegExp, Numbers])[] = [
  [/Llama 3.1 8B/, { n_ff: 14_336 }],
  [/GLM Z1 32B/, { n_ff: 23_040 }],
  [/Qwen3-30B-A3B/, { n_embd: 2048, n_expert_used: 8, n_ff_exp: 768, n_vocab: 151_936 }],
  [/Mistral-7B/, { n_embd: 4096, n_ff: 14_336, n_vocab: 32_768 }],
  [
    /Qwen2.5-3B/,
    { n_embd: 2048, n_ff: 11_008, n_vocab: 151_936, n_head: 16, n_head_kv: 2, n_embd_head_k: 128 },
  ],
  [/gemma-4-12B/, { n_embd: 3840, n_ff: 15_360, n_vocab: 262_144 }],
  [
    /26.9B qwen35|27B class/,
    {
      n_embd: 5120,
      n_ff: 17_408,
      n_vocab: 248_320,
      ssm_d_conv: 4,
      ssm_d_state: 128,
      ssm_n_group: 16,
      ssm_d_inner: 6144,
    },
  ],
  [
    /Qwen3.5-9B class/,
    {
      n_embd: 4096,
      n_ff: 12_288,
      n_vocab: 248_320,
      ssm_d_conv: 4,
      ssm_d_state: 128,
      ssm_n_group: 16,
      ssm_d_inner: 4096,
    },
  ],
  [
    /Falcon-H1-1.5B/,
    { n_embd: 2048, n_ff: 4096, ssm_d_conv: 4, ssm_d_state: 256, ssm_n_group: 1, ssm_d_inner: 3072 },
  ],
];

/** The header of such a model: its metadata, no tensors. */
export function headerOf(given: MeasuredCase): GgufHeader {
  const known = PUBLIC_FACTS.filter(([pattern]) => pattern.test(given.model)).map(([, facts]) => facts);
  const params: Numbers = Object.assign({}, ...known, given.params);
  const architecture = typeof params.arch === 'string' ? params.arch : 'llama';
  const values: Record<string, MetadataValue | null> = {
    ...layerValues(params),
    context_length: number(params, 'n_ctx_train') ?? 131_072,
    embedding_length: number(params, 'n_embd'),
    feed_forward_length: number(params, 'n_ff'),
    nextn_predict_layers: number(params, 'n_nextn'),
    expert_count: number(params, 'n_expert'),
    expert_used_count: number(params, 'n_expert_used'),
    expert_feed_forward_length: number(params, 'n_ff_exp'),
    'attention.kv_lora_rank': number(params, 'kv_lora_rank'),
    'rope.dimension_count': number(params, 'n_rot'),
    'attention.sliding_window': number(params, 'n_swa'),
    'ssm.conv_kernel': number(params, 'ssm_d_conv'),
    'ssm.state_size': number(params, 'ssm_d_state'),
    'ssm.group_count': number(params, 'ssm_n_group'),
    'ssm.inner_size': number(params, 'ssm_d_inner'),
    vocab_size: number(params, 'n_vocab'),
  };
  const metadata: Record<string, MetadataValue> = { 'general.architecture': architecture };
  const listLengths: Record<string, number> = {};
  for (const [key, value] of Object.entries(values)) {
    if (value === null) continue;
    metadata[`${architecture}.${key}`] = value;
    if (Array.isArray(value)) listLengths[`${architecture}.${key}`] = value.length;
  }
  return { version: 3, architecture, metadata, listLengths, tensors: [], fileBytes: 0, hasWeights: true };
}

function layerValues(params: Numbers): Record<string, MetadataValue | null> {
  const next = number(params, 'n_nextn') ?? 0;
  const globalLayers = number(params, 'n_layer_global', 'n_layer_global_with_cache');
  if (globalLayers !== null) return windowedLayers(params, globalLayers);
  const layers = number(params, 'n_layer') ?? 0;
  const kvLayers = number(params, 'n_kv_layers') ?? layers;
  const row = number(params, ...ROWS);
  const heads = list(params, 'n_head_kv') ?? number(params, 'n_head_kv');
  return {
    block_count: layers + next,
    'attention.head_count': number(params, 'n_head') ?? 32,
    'attention.head_count_kv': heads ?? (row === null ? null : 1),
    'attention.key_length': heads === null ? row : number(params, 'n_embd_head_k'),
    'attention.value_length':
      heads === null
        ? (number(params, 'n_embd_v_gqa', 'n_embd_v_gqa_inferred') ?? row)
        : number(params, 'n_embd_head_v', 'n_embd_head_k'),
    full_attention_interval:
      number(params, 'full_attention_interval') ?? (kvLayers < layers ? layers / kvLayers : null),
    'attention.sliding_window_pattern': number(params, 'swa_period'),
  };
}

/** Rows of their own for windowed and other layers, as in Gemma 4, where one layer in six sees everything. */
function windowedLayers(params: Numbers, globalLayers: number): Record<string, MetadataValue | null> {
  const [keyLength, windowedLength] = [512, 256];
  const owners = globalLayers + (number(params, 'n_layer_swa', 'n_layer_swa_with_cache') ?? 0);
  const shared = number(params, 'n_layer_global_with_cache') === null ? 0 : 18;
  // Spread evenly: which layers they are changes no sum.
  const globalsBefore = (index: number): number => Math.floor((index * globalLayers) / owners);
  const each = <T>(windowed: T, all: T): T[] =>
    Array.from({ length: owners + shared }, (_, index) =>
      globalsBefore(index + 1) > globalsBefore(index) ? all : windowed,
    );
  return {
    block_count: owners + shared,
    'attention.head_count': 16,
    'attention.head_count_kv': each(
      (number(params, 'swa_k_gqa') ?? 0) / windowedLength,
      (number(params, 'global_k_gqa') ?? 0) / keyLength,
    ),
    'attention.key_length': keyLength,
    'attention.value_length': keyLength,
    'attention.key_length_swa': windowedLength,
    'attention.value_length_swa': windowedLength,
    'attention.sliding_window_pattern': each(true, false),
    'attention.shared_kv_layers': shared === 0 ? null : shared,
  };
}

export function flagsOf(given: MeasuredCase): LoadFlags {
  const { flags } = given;
  const text = (key: string): string => String(flags[key] ?? '');
  const unified = flags.kv_unified === true || flags.kv_unified === 'true';
  return {
    ...DEFAULT_FLAGS,
    contextTokens: number(flags, 'n_ctx') ?? 4096,
    slots: number(flags, 'n_seq_max') ?? 1,
    unified,
    ubatch: number(flags, 'n_ubatch') ?? 512,
    cacheTypeK: text('type_k') || 'f16',
    cacheTypeV: text('type_v') || text('type_k') || 'f16',
    flashAttention: text('flash_attn') === '0' ? 'off' : 'on',
    fullWindowCache: /^full/.test(text('swa_cache')),
    latentCache: /-mla|MLA cache/.test(given.engine),
    nextTokenDraft: Number(/mtp n_max (\d+)/.exec(text('spec'))?.[1] ?? 0),
    devices: given.devices,
    // A date of after the build that reserves outputs for its slots alone.
    build: /2026-0[6-9]|2026-1\d/.test(given.engine) ? 10_000 : null,
  };
}

/** One number for each layer. null: the field is no list. */
function list(values: Numbers, key: string): number[] | null {
  const value = values[key];
  return Array.isArray(value) && value.every((one) => typeof one === 'number') ? value : null;
}

/** Numbers may be texts. null: in none of the fields. */
function number(values: Numbers, ...keys: readonly string[]): number | null {
  for (const key of keys) {
    const value = values[key];
    if (typeof value === 'number') return value;
    if (typeof value === 'string' && /^\d+$/.test(value)) return Number(value);
  }
  return null;
}
