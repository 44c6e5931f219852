/**
 * `npm run gpu-check`: one folder that checks what this program knows of an NVIDIA card, on any Linux
 * machine that has one, with nothing to install.
 *
 *   out/gpu-check/run             unpacks Node beside itself, or in /tmp, and runs the check
 *                /node.gz         Node 24
 *                /gpu-check.js    sampler, ledger and check in one file
 *                /node_modules/   koffi and its binary
 */
import { createReadStream, createWriteStream, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { build } from 'vite';
import { copyNative, type Target } from '../package/native.ts';

/** Node ends up in its own folder's way on a disk that is read only, so it may be elsewhere. */
const RUN = `#!/bin/sh
# Checks what VRAM Landlord reads of NVIDIA cards; writes gpu-check.txt and gpu-check.json here, or to --out DIR.
set -eu
here=$(cd "\${0%/*}" && pwd -P)
node=$here/node
made=
if [ ! -x "$node" ]; then
  if ! ( : >"$node.new" ) 2>/dev/null; then
    made=$(mktemp -d "\${TMPDIR:-/tmp}/gpu-check-XXXXXX")
    node=$made/node
    trap 'rm -rf "$made"' EXIT
  fi
  gzip -dc "$here/node.gz" >"$node.new"
  chmod 755 "$node.new"
  mv "$node.new" "$node"
fi
"$node" "$here/gpu-check.js" "$@"
`;

/** Builds the folder, which is emptied first. */
export async function makeGpuCheck(root: string, outDir: string): Promise<void> {
  rmSync(outDir, { recursive: true, force: true });
  mkdirSync(outDir, { recursive: true });
  await build({
    configFile: false,
    root,
    logLevel: 'error',
    cacheDir: join(root, 'node_modules/.cache/vite'),
    ssr: { noExternal: true, external: ['koffi'], target: 'node' },
    build: {
      ssr: true,
      outDir,
      emptyOutDir: false,
      target: 'node24',
      minify: true,
      sourcemap: false,
      rolldownOptions: {
        input: { 'gpu-check': join(root, 'build/gpu-check/main.ts') },
        output: { format: 'es', entryFileNames: '[name].js', codeSplitting: false },
      },
    },
  });
  copyNative(root, outDir, target());
  writeFileSync(join(outDir, 'package.json'), '{ "type": "module", "private": true }\n');
  writeFileSync(join(outDir, 'run'), RUN, { mode: 0o755 });
  await pipeline(
    createReadStream(join(root, 'node_modules/node/bin/node')),
    createGzip({ level: 6 }),
    createWriteStream(join(outDir, 'node.gz')),
  );
}

function target(): Target {
  const { platform, arch } = process;
  if (platform !== 'linux' || (arch !== 'x64' && arch !== 'arm64'))
    throw new Error(
      `It is made for Linux on x64 or arm64, by such a machine; this is ${platform} on ${arch}.`,
    );
  return { platform, arch };
}

if (process.argv[1] === import.meta.filename) {
  const root = join(import.meta.dirname, '../..');
  const outDir = join(root, 'out/gpu-check');
  await makeGpuCheck(root, outDir);
  process.stdout.write(
    `${outDir} is made. Copy it to a machine with an NVIDIA card and call \`run\` in it; it writes gpu-check.txt.\n`,
  );
}
