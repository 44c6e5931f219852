import { readFileSync } from 'node:fs';
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';

/**
 * Loads models on the first Vulkan device with so many layers and a small context, and says what llama.cpp
 * logs that it put there, in MiB. A list of loads as JSON on stdin, a list of answers on stdout. Its own process:
 * Vulkan reads its environment as it starts.
 */
export interface DeviceLoad {
  readonly path: string;
  readonly gpuLayers: number;
  readonly contextTokens: number;
}

export interface DeviceBuffers {
  readonly weightsMib: number;
  readonly kvMib: number;
  readonly stateMib: number;
}

let log = '';
const llama = await getLlama({
  gpu: 'vulkan',
  build: 'never',
  skipDownload: true,
  progressLogs: false,
  logLevel: LlamaLogLevel.debug,
  logger: (_level, message) => {
    log += message;
  },
});
const sum = (what: string): number =>
  [...log.matchAll(new RegExp(`Vulkan0 ${what} buffer size = +([\\d.]+) MiB`, 'g'))].reduce(
    (all, match) => all + Number(match[1]),
    0,
  );
const loads: readonly DeviceLoad[] = JSON.parse(readFileSync(0, 'utf8'));
const answers: DeviceBuffers[] = [];
for (const { path, gpuLayers, contextTokens } of loads) {
  log = '';
  const model = await llama.loadModel({ modelPath: path, gpuLayers });
  const context = await model.createContext({ contextSize: contextTokens, sequences: 1 });
  // What was logged comes with a later turn of the event loop.
  await new Promise((resolve) => setTimeout(resolve, 50));
  answers.push({ weightsMib: sum('model'), kvMib: sum('KV'), stateMib: sum('RS') });
  await context.dispose();
  await model.dispose();
}
process.stdout.write(JSON.stringify(answers));
process.exit(0);
