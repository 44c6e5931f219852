/**
 * llama.cpp flags that name a file whose tensors are loaded (common/arg.cpp; see llama-server(1)):
 * the model, its multimodal projector, a draft model, adapters, a vocoder.
 */
const MODEL_FLAGS = new Set(['-m', '--model']);
const MORE_FLAGS = new Set([
  '-mm',
  '--mmproj',
  '-md',
  '--model-draft',
  '--spec-draft-model',
  '-mv',
  '--model-vocoder',
  '--lora',
]);
/** Flags that leave the projector out of the device, or out altogether. */
const NO_PROJECTOR = new Set(['--no-mmproj', '--no-mmproj-offload']);

/** Every weight file a command line loads, parts of split files included; empty: none is named. */
export function weightFiles(args: readonly string[] | null, modelPath: string | null): readonly string[] {
  const files = new Set<string>();
  const list = args ?? [];
  const withoutProjector = list.some((arg) => NO_PROJECTOR.has(arg));
  let main = modelPath;
  for (let index = 0; index < list.length - 1; index++) {
    const [flag, value] = [list[index] ?? '', list[index + 1] ?? ''];
    if (value === '') continue;
    if (MODEL_FLAGS.has(flag)) main = value;
    const projector = flag === '-mm' || flag === '--mmproj';
    if (!MORE_FLAGS.has(flag) || (projector && withoutProjector)) continue;
    for (const part of splitParts(value)) files.add(part);
  }
  if (main === null || main === '') return [];
  return [...new Set([...splitParts(main), ...files])];
}

/**
 * `x-00001-of-00003.gguf` stands for its three parts (gguf-split's naming, llama.cpp
 * `llama_split_path`); any other path for itself.
 */
export function splitParts(path: string): readonly string[] {
  const match = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/.exec(path);
  const count = Number(match?.[3] ?? 0);
  if (match === null || count < 1 || count > 1_000) return [path];
  return Array.from(
    { length: count },
    (_, index) => `${match[1]}-${String(index + 1).padStart(5, '0')}-of-${match[3]}.gguf`,
  );
}
