import { stat } from 'node:fs/promises';
import { GgufInsights, getLlama, type Llama, LlamaLogLevel, readGgufFileInfo } from 'node-llama-cpp';
import { factsOf } from '../../electron/core/ledger/footprint/architecture.ts';
import { commandFlags } from '../../electron/core/ledger/footprint/command-flags.ts';
import { estimate, type Footprint } from '../../electron/core/ledger/footprint/estimate.ts';
import { DEFAULT_FLAGS, slotsOf } from '../../electron/core/ledger/footprint/flags.ts';
import { readModel } from '../../electron/core/ledger/footprint/footprint-of-load.ts';
import { ggmlTypeNamed } from '../../electron/core/ledger/footprint/ggml-types.ts';
import type { GgufHeader } from '../../electron/core/ledger/footprint/gguf-header.ts';
import type { ReferenceSource } from '../../electron/core/ledger/footprint/reference-source.ts';

/** How others foretell what a load takes, on the same file and flags. Bytes; null: it can not say. */
export interface Method {
  readonly name: string;
  bytes(load: BenchLoad): Promise<number | null>;
}

export interface BenchLoad {
  readonly path: string;
  readonly args: readonly string[];
  readonly build: number | null;
}

/** All of a CPU's memory but the process itself, which no log names. */
const withoutOverhead = (footprint: Footprint): number => footprint.totalBytes - footprint.overheadBytes;

const FELL_BACK = /falling back/i;

export async function methods(reference: ReferenceSource): Promise<readonly Method[]> {
  let fellBack = false;
  const llama = await getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: 2,
    logLevel: LlamaLogLevel.warn,
    logger: (_level, message) => {
      fellBack ||= FELL_BACK.test(message);
    },
  });
  return [
    {
      name: 'landlord, arithmetic',
      bytes: async ({ path, args, build }) => {
        const header = await readModel(path);
        if (!header.ok) return null;
        return withoutOverhead(estimate(header.value, { ...commandFlags(args), build }, 'cpu'));
      },
    },
    {
      name: 'landlord, checked by llama.cpp',
      bytes: async ({ path, args, build }) => {
        const answer = await reference.footprintOf({ modelPath: path, args, kind: 'cpu', build });
        return answer.ok ? withoutOverhead(answer.value) : null;
      },
    },
    {
      name: 'node-llama-cpp, V2',
      bytes: async (load) => {
        fellBack = false;
        const { insights, options } = await opened(llama, load);
        const model = await insights.estimateModelResourceRequirementsV2({ gpuLayers: 0 });
        const context = await insights.estimateContextResourceRequirementsV2({
          ...options,
          flashAttention: options.flashAttention ?? 'auto',
        });
        await new Promise((resolve) => setImmediate(resolve));
        return fellBack ? null : model.cpuRam + context.cpuRam;
      },
    },
    ...[true, false].map((flashAttention) => ({
      name: `node-llama-cpp, older${flashAttention ? ', told of flash attention' : ''}`,
      bytes: async (load: BenchLoad) => {
        const { insights, options } = await opened(llama, load);
        const model = insights.estimateModelResourceRequirements({ gpuLayers: 0 });
        const context = insights.estimateContextResourceRequirements({ ...options, flashAttention });
        return model.cpuRam + context.cpuRam;
      },
    })),
    {
      name: 'file × 1.5 (lmxd)',
      bytes: async ({ path }) => (await stat(path)).size * 1.5,
    },
    {
      name: 'file + f16 KV (Ollama)',
      bytes: async ({ path, args }) => {
        const header = await readModel(path);
        return header.ok ? (await stat(path)).size + plainCacheBytes(header.value, args) : null;
      },
    },
  ];
}

/** Every layer that has key-value heads, the whole context, two bytes an element. */
export function plainCacheBytes(header: GgufHeader, args: readonly string[]): number {
  const facts = factsOf(header);
  const tokens = commandFlags(args).contextTokens ?? facts.trainedContext ?? 0;
  const row = facts.layers.reduce((sum, layer) => sum + layer.keyElements + layer.valueElements, 0);
  return 2 * tokens * row;
}

async function opened(llama: Llama, { path, args }: BenchLoad) {
  const file = await readGgufFileInfo(path, { sourceType: 'filesystem', logWarnings: false });
  const insights = await GgufInsights.from(file, llama);
  const flags = commandFlags(args);
  const { sequences } = slotsOf(flags);
  const total = flags.contextTokens ?? insights.trainContextSize ?? 4096;
  return {
    insights,
    options: {
      contextSize: Math.ceil(total / sequences),
      sequences,
      modelGpuLayers: 0,
      batchSize: Math.min(flags.ubatch, DEFAULT_FLAGS.batch),
      swaFullCache: flags.fullWindowCache,
      kvCacheKeyType: ggmlTypeNamed(flags.cacheTypeK)?.id ?? 1,
      kvCacheValueType: ggmlTypeNamed(flags.cacheTypeV)?.id ?? 1,
      ...(flags.flashAttention === 'auto' ? {} : { flashAttention: flags.flashAttention === 'on' }),
    },
  };
}
