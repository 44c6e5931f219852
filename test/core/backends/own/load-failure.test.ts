import { describe, expect, it } from 'vitest';
import { lastWords, whyInLog } from '../../../../electron/core/backends/own/load-failure.ts';

const SPAWNED = '0.14.867.579 I srv          load: spawning server instance with name=big on port 45217';

describe('why the last load of a model failed, by its router’s log', () => {
  it('is what its own server said first, whoever else speaks', () => {
    const lines = [
      SPAWNED.replace('45217', '40000'),
      '[40000] 0.00.100.000 E srv    load_model: failed to load model, /models/other.gguf',
      SPAWNED,
      '[41111] 0.00.100.000 E another one: error',
      '[45217] 0.00.017.065 I srv    load_model: loading model',
      '[45217] 1.06.520.077 E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4480.00 MiB on device 0: cudaMalloc failed: out of memory.',
      '[45217] 1.06.520.084 E llama_kv_cache_init: failed to allocate buffer for kv cache',
      '0.14.868.747 I srv           run: instance name=big exited with status 1',
    ];
    expect(whyInLog(lines, 'big')).toBe(
      'ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4480.00 MiB on device 0: cudaMalloc failed: out of memory',
    );
  });

  it('is not known where the log does not tell', () => {
    expect(whyInLog([], 'big')).toBeNull();
    expect(whyInLog([SPAWNED], 'big')).toBeNull();
    expect(whyInLog([SPAWNED, '[45217] I all is well'], 'big')).toBeNull();
    expect(whyInLog([SPAWNED, '[45217] error'], 'bi')).toBeNull();
    expect(whyInLog(['[] error', SPAWNED.replace('45217', '')], 'big')).toBeNull();
  });
});

describe('the last words of a server', () => {
  const STARTING = '[landlord 2026-11-30T04:48:24.217Z] starting llama-server';
  const ENDED = '[landlord 2026-11-30T04:48:25.217Z] ended with exit code 1';

  it.each([
    [
      [
        '0.00.100.000 E an earlier run: out of memory',
        STARTING,
        '0.00.200.000 W cmn  common_fit_params: failed to fit params to free device memory',
        '0.00.900.000 E ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory',
        '0.00.910.000 E srv  llama_server: exiting due to model loading error',
        ENDED,
      ],
      'ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory',
    ],
    [[STARTING, 'error: invalid argument: --foo', ''], 'error: invalid argument: --foo'],
    [
      [STARTING, '  raise RuntimeError()', 'torch.OutOfMemoryError: CUDA out of memory.', ENDED],
      /OutOfMemory/,
    ],
    [[STARTING, '0.00.100.000 I srv    operator(): cleaning up'], 'srv    operator(): cleaning up'],
    [[STARTING, ENDED], null],
    // What an earlier run said is no reason of this one.
    [[STARTING, '0.00.100.000 E an earlier run: out of memory', ENDED, STARTING, ENDED], null],
    [['0.00.100.000 E a run of which the start is too far back', ENDED], /too far back/],
    [[], null],
  ])('%j', (lines, said) => {
    const words = lastWords(lines);
    if (said instanceof RegExp) expect(words).toMatch(said);
    else expect(words).toBe(said);
  });
});
