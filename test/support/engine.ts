import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChildEngineHost, type EngineHostOptions } from '../../electron/core/engine/child-host.ts';
import type {
  ContextRequest,
  Decoded,
  EngineHost,
  LiveContext,
  LoadedModel,
} from '../../electron/core/engine/engine-host.ts';
import type { Result } from '../../shared/errors.ts';
import { gguf, type SyntheticShape } from './gguf.ts';

/** 1.4 MB; what it says depends on all that was said before, so that one wrong cell shows. About a millisecond a token. */
export const TALKER_SHAPE: SyntheticShape = {
  layers: 4,
  width: 128,
  feedForward: 256,
  heads: 4,
  kvHeads: 2,
  contextTokens: 4096,
  seed: 11,
  sigma: 0.2,
};

export const NEVER = new AbortController().signal;

/** The value, or the test ends with the error's own words. */
export function must<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.error.code}: ${result.error.message}`);
  return result.value;
}

export interface TestEngine extends AsyncDisposable {
  readonly host: ChildEngineHost;
  /** Why children ended that were not asked to. */
  readonly ended: string[];
  /** In host memory and on disk; gone with the engine. */
  readonly memoryFolder: string;
  readonly diskFolder: string;
  load(shape?: SyntheticShape, gpuLayers?: number | null): Promise<LoadedModel>;
  context(model: LoadedModel, more?: Partial<ContextRequest>): Promise<LiveContext>;
  tokens(model: LoadedModel, text: string): Promise<readonly number[]>;
}

/** A real engine on the CPU with one thread, which stays quick on a busy machine. */
export function testEngine(options: EngineHostOptions = {}): TestEngine {
  const host = new ChildEngineHost({ gpu: 'cpu', threads: 1, ...options });
  const ended: string[] = [];
  host.onEnded((why) => ended.push(why));
  const memoryFolder = mkdtempSync('/dev/shm/landlord-engine-');
  const diskFolder = mkdtempSync(join(tmpdir(), 'landlord-engine-'));
  return {
    host,
    ended,
    memoryFolder,
    diskFolder,
    async load(shape = TALKER_SHAPE, gpuLayers = null) {
      return must(await host.loadModel({ path: await gguf(shape), gpuLayers }, NEVER));
    },
    async context(model, more = {}) {
      return must(
        await host.createContext({ modelId: model.modelId, contextTokens: 512, batchTokens: 64, ...more }),
      );
    },
    async tokens(model, text) {
      return must(await host.tokenize(model.modelId, text, false));
    },
    async [Symbol.asyncDispose]() {
      await host.stop();
      await rm(memoryFolder, { recursive: true, force: true });
      await rm(diskFolder, { recursive: true, force: true });
    },
  };
}

/** Says `tokens` and generates, without listening to the pieces. */
export async function say(
  host: EngineHost,
  contextId: string,
  tokens: readonly number[],
  maxTokens: number,
): Promise<Decoded> {
  return must(await host.decode({ contextId, tokens, maxTokens }, () => {}, NEVER));
}
