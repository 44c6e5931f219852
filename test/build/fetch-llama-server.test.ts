import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  archivesOf,
  cpuBackend,
  ensureLlamaServer,
  findLlamaServer,
} from '../../build/fetch-llama-server.mjs';

const DEB822 = `Types: deb
# a comment
URIs: http://mirror.test/debian
Suites: trixie trixie-updates
Components: main
Signed-By: /usr/share/keyrings/some.gpg

Types: deb
URIs: http://mirror.test/debian-security
Suites: trixie-security
Components: main

Types: deb-src
URIs: http://other.test/debian
Suites: trixie
Components: main

Enabled: no
Types: deb
URIs: http://off.test/debian
Suites: sid
Components: main
`;

describe('the archive llama-server comes from', () => {
  it('is read from a deb822 file: the one Debian archive that is on', () => {
    expect(archivesOf([{ name: 'debian.sources', text: DEB822 }])).toEqual([
      {
        uri: 'http://mirror.test/debian',
        suites: 'trixie trixie-updates',
        signedBy: '/usr/share/keyrings/some.gpg',
      },
    ]);
  });

  it('is read from one-line sources, with and without options', () => {
    const text = [
      '# deb http://off.test/debian sid main',
      'deb [arch=amd64 signed-by=/k.gpg] http://a.test/debian/ bookworm main contrib',
      'deb http://b.test/debian bookworm-security main',
      'deb-src http://c.test/debian bookworm main',
      'deb http://vendor.test/apt stable main',
    ].join('\n');
    expect(archivesOf([{ name: '/etc/apt/sources.list', text }])).toEqual([
      { uri: 'http://a.test/debian/', suites: 'bookworm', signedBy: '/k.gpg' },
    ]);
  });

  it('keeps a key that is written in the file itself', () => {
    const text =
      'Types: deb\nURIs: http://m.test/debian\nSuites: sid\nSigned-By:\n -----BEGIN-----\n .\n abc\nComponents: main\n';
    expect(archivesOf([{ name: 'x.sources', text }])[0]?.signedBy).toBe('\n -----BEGIN-----\n .\n abc');
  });

  it('is none on a machine of another distribution', () => {
    expect(archivesOf([{ name: 'ubuntu.list', text: 'deb http://u.test/ubuntu noble main' }])).toEqual([]);
  });
});

describe('the CPU library', () => {
  const names = ['libggml-cpu-zen4.so', 'libggml-cpu-x64.so', 'libggml-cpu-haswell.so', 'libggml-vulkan.so'];

  it('is one the processor can run', () => {
    expect(cpuBackend(names, new Set(['avx2', 'fma', 'f16c']))).toBe('libggml-cpu-haswell.so');
    expect(cpuBackend(names, new Set(['avx']))).toBe('libggml-cpu-x64.so');
    expect(cpuBackend([], new Set())).toBeNull();
  });
});

describe('finding a llama-server', () => {
  it('is null where none was fetched and none is on PATH, and says what to do when told not to fetch', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'landlord-empty-'));
    try {
      expect(findLlamaServer({ cacheDir: join(empty, 'none'), path: empty })).toBeNull();
      await expect(
        ensureLlamaServer({ cacheDir: join(empty, 'none'), allowDownload: false }),
      ).rejects.toThrow(/fetch-llama-server\.mjs/);
    } finally {
      await rm(empty, { recursive: true });
    }
  });
});
