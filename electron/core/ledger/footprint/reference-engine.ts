import type { GgufInsights } from 'node-llama-cpp';
import { fail, messageOf, ok, type Result } from '../../../../shared/errors.ts';
import type { ReferenceAnswer, ReferenceQuestion } from './reference.ts';

/** llama.cpp in this process, for questions about files. It may crash, hang or be missing: see `referencesInChild`. */
export interface ReferenceEngine {
  /** Errors: `bad_input` where it can not open the file or make such a context. */
  ask(path: string, question: ReferenceQuestion): Promise<Result<ReferenceAnswer>>;
}

/** The V2 estimates fall back to a rough guess without an error; only this line of their log tells. */
const FELL_BACK = /falling back/i;

/** Errors: `internal` where the package or a binary for this machine is missing. */
export async function referenceEngine(): Promise<Result<ReferenceEngine>> {
  try {
    const { getLlama, getModuleVersion, readGgufFileInfo, GgufInsights, LlamaLogLevel } = await import(
      'node-llama-cpp'
    );
    let trouble: string | null = null;
    const llama = await getLlama({
      // No device is touched: a look must not wake one, nor hold its memory.
      gpu: false,
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      maxThreads: 1,
      logLevel: LlamaLogLevel.warn,
      logger: (_level, message) => {
        if (FELL_BACK.test(message)) trouble = message.trim();
      },
    });
    const engine = `node-llama-cpp ${await getModuleVersion()}`;
    return ok({
      async ask(path, question) {
        trouble = null;
        try {
          const file = await readGgufFileInfo(path, { sourceType: 'filesystem', logWarnings: false });
          const answer = await answerTo(await GgufInsights.from(file, llama), question);
          // What was logged comes with the next turn of the event loop.
          await new Promise((resolve) => setImmediate(resolve));
          return trouble === null ? ok({ ...answer, engine }) : fail('bad_input', refusal(engine, trouble));
        } catch (thrown) {
          return fail('bad_input', refusal(engine, messageOf(thrown)));
        }
      },
    });
  } catch (thrown) {
    return fail('internal', `node-llama-cpp can not be used here: ${messageOf(thrown)}`);
  }
}

/** Its own words are a log's: what went wrong stands at their end. */
function refusal(engine: string, words: string): string {
  const reason =
    words
      .split(/\berror: /i)
      .at(-1)
      ?.trim()
      .replace(/\.$/, '') ?? '';
  return `llama.cpp (${engine}) can not open it: ${reason}.`;
}

async function answerTo(
  insights: GgufInsights,
  question: ReferenceQuestion,
): Promise<Omit<ReferenceAnswer, 'engine'>> {
  // It adds a token to each batch of a model with a window.
  const added = insights.swaSize !== undefined && !question.fullWindowCache ? 1 : 0;
  const contextOf = async (ubatch: number): Promise<number> => {
    const { cpuRam } = await insights.estimateContextResourceRequirementsV2({
      contextSize: question.contextTokens,
      modelGpuLayers: 0,
      sequences: question.sequences,
      batchSize: Math.max(1, ubatch - added),
      flashAttention: question.flashAttention,
      swaFullCache: question.fullWindowCache,
      kvCacheKeyType: question.typeK,
      kvCacheValueType: question.typeV,
    });
    return cpuRam;
  };
  const { cpuRam } = await insights.estimateModelResourceRequirementsV2({ gpuLayers: 0 });
  const [whole, small] = question.ubatches;
  return { weightsBytes: cpuRam, contextBytes: [await contextOf(whole), await contextOf(small)] };
}
