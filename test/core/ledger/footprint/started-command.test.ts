import { describe, expect, it } from 'vitest';
import { shellWords } from '../../../../electron/core/ledger/footprint/other-flags.ts';
import { startedCommand } from '../../../../electron/core/ledger/footprint/started-command.ts';

const started = (text: string): string => startedCommand(shellWords(text)).join(' ');

describe('what a command line starts', () => {
  it.each([
    ['llama-server -m /m.gguf -c 4096', 'llama-server -m /m.gguf -c 4096'],
    ['taskset -c 4 /opt/llama-server -m /m.gguf', '/opt/llama-server -m /m.gguf'],
    ['nice -n 5 llama serve -m /m.gguf', 'llama serve -m /m.gguf'],
    [
      'env CUDA_VISIBLE_DEVICES=1 LLAMA_ARG_CTX_SIZE=8192 llama-server -m /m.gguf',
      'llama-server --ctx-size 8192 -m /m.gguf',
    ],
    ['bash -c "llama-server -m /m.gguf"', 'llama-server -m /m.gguf'],
    [`sh -lc 'cd /opt && ulimit -l unlimited; exec ./llama-server -m /m.gguf'`, './llama-server -m /m.gguf'],
    ['python -m vllm.entrypoints.openai.api_server', 'python -m vllm.entrypoints.openai.api_server'],
    ['./start-it.sh -c 3', './start-it.sh -c 3'],
    // The file's own, which it may hand to its server.
    ['bash ./start-it.sh -m /m.gguf -c 4096', 'bash ./start-it.sh -m /m.gguf -c 4096'],
    ['bash -euo pipefail -c "llama-server -m /m.gguf; "', 'llama-server -m /m.gguf'],
    ['llama-server --alias docker -m run', 'llama-server --alias docker -m run'],
  ])('%s', (text, expected) => expect(started(text)).toBe(expected));
});

describe('what a container starts', () => {
  it('is what follows its image, with paths as they are outside', () => {
    const docker = `docker run --init --rm -it -p 9501:8080 --gpus '"device=1,2"' -m 16g -c 512
      -v /srv/models:/models:ro --name=x ghcr.io/ggml-org/llama.cpp:server-cuda -m /models/q.gguf -c 8192`;
    expect(started(docker)).toBe('docker -m /srv/models/q.gguf -c 8192');
  });

  it('may have its mounts and its environment in other words', () => {
    const podman = `/usr/bin/podman run --replace --device /dev/kfd --device /dev/dri
      --mount type=bind,src=/data/a,dst=/models/ -v /data/b:/models/deep -e LLAMA_ARG_MODEL=/models/deep/q.gguf
      --env LLAMA_ARG_CTX_SIZE=4096 --env HF_TOKEN image --mmproj=/models/p.gguf --lora /modelsx/l`;
    expect(started(podman)).toBe(
      '/usr/bin/podman --model /data/b/q.gguf --ctx-size 4096 --mmproj=/data/a/p.gguf --lora /modelsx/l',
    );
  });

  it('keeps what can not be known from here', () => {
    expect(started('sudo docker run -v cache:/models -v ./here:/other image -m /models/q -md /other/d')).toBe(
      'docker -m /models/q -md /other/d',
    );
    for (const text of ['docker start x', 'docker exec x llama-server -m /m.gguf', './run docker'])
      expect(started(text)).toBe(text);
    expect(started('docker run -dp80:80 -v/srv:/m -p9:9 image -m /m/q')).toBe('docker -m /srv/q');
    expect(started('docker run --rm')).toBe('docker');
  });
});
