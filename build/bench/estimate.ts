import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { estimate } from '../../electron/core/ledger/footprint/estimate.ts';
import { referencesInChild } from '../../electron/core/ledger/footprint/reference-source.ts';
import { type GgufSpec, writeGguf } from '../models/gguf-writer.ts';
import { expectedKvMib, flagsOf, headerOf, measuredCase, measuredFiles } from '../models/kv-measured.ts';
import { SMALL_MODELS, WIDE_MODELS } from '../models/synthetic-models.ts';
import { badFileCosts } from './bad-files.ts';
import { loggedLoad } from './estimate-loads.ts';
import { type Method, methods, plainCacheBytes } from './estimate-methods.ts';
import { type BenchReport, type BenchSide, figures, quantile } from './report.ts';

const MIB = 1_048_576;
const WIDE_WAYS: readonly (readonly string[])[] = [
  ['-c', '16384', '-np', '1'],
  ['-c', '32768'],
  ['-c', '32768', '-np', '2', '-ctk', 'q8_0', '-ctv', 'q8_0'],
];
const SMALL_WAYS: readonly (readonly string[])[] = [['-c', '8192', '-np', '2']];

interface Guess {
  readonly load: string;
  /** Guessed over logged, minus 1; null: the method can not say. */
  readonly error: number | null;
}

/** How right an estimate is, ours beside others', on loads that a real llama-server here logs. */
export async function benchEstimate(short: boolean): Promise<BenchReport> {
  const folder = await mkdtemp(join(tmpdir(), 'landlord-bench-estimate-'));
  const reference = referencesInChild({ nodePath: process.execPath });
  try {
    const ways = await methods(reference);
    const guesses = new Map<Method, Guess[]>(ways.map((method) => [method, []]));
    const times = new Map<Method, number[]>(ways.map((method) => [method, []]));
    const loads = [
      ...loadsOf(WIDE_MODELS, short ? WIDE_WAYS.slice(0, 1) : WIDE_WAYS),
      ...(short ? [] : loadsOf(SMALL_MODELS, SMALL_WAYS)),
    ];
    for (const { name, spec, args } of loads) {
      const path = await writeGguf(join(folder, `${name.replaceAll(/\W+/g, '-')}.gguf`), spec);
      const logged = await loggedLoad(path, args);
      const wanted = logged.weightsBytes + logged.cacheBytes + logged.computeBytes;
      for (const method of ways) {
        const beganAtMs = performance.now();
        const bytes = await method.bytes({ path, args, build: logged.build });
        times.get(method)?.push((performance.now() - beganAtMs) * 1000);
        guesses
          .get(method)
          ?.push({ load: `${name} ${args.join(' ')}`, error: bytes === null ? null : bytes / wanted - 1 });
      }
      await rm(path);
    }
    const bad = await badFileCosts(folder);
    const sides: BenchSide[] = ways.map((method) => ({
      name: method.name,
      samplesUs: times.get(method) ?? [],
    }));
    const refused = bad.every((file) => file.sentence !== null);
    return {
      part: 'estimate',
      sides: figures(sides),
      notes: [
        `Above: time of one answer. Below: error of the whole, over ${loads.length} loads of ${new Set(loads.map((load) => load.name)).size} models whose sizes llama-server logged here.`,
        ...ways.map((method) => errorLine(method.name, guesses.get(method) ?? [])),
        ...evidenceLines(),
        'Files that are none: time to refuse, and memory beyond that for a good file.',
        ...bad.map(
          ({ name, readMs, extraBytes, sentence }) =>
            `  ${name.padEnd(20)} ${readMs.toFixed(0).padStart(5)} ms ${(extraBytes / MIB).toFixed(0).padStart(4)} MiB  ${sentence ?? 'NOT REFUSED'}`,
        ),
      ],
      ...(refused ? {} : { failed: true }),
    };
  } finally {
    reference.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function loadsOf(models: Readonly<Record<string, GgufSpec>>, ways: readonly (readonly string[])[]) {
  return Object.entries(models).flatMap(([name, spec]) => ways.map((args) => ({ name, spec, args })));
}

function errorLine(name: string, guesses: readonly Guess[]): string {
  const told = guesses.flatMap(({ error, load }) => (error === null ? [] : [{ error, load }]));
  const sorted = told.toSorted((a, b) => Math.abs(b.error) - Math.abs(a.error));
  const [worst] = sorted;
  if (worst === undefined) return `  ${name.padEnd(48)} can say nothing`;
  const median = quantile(
    told.map(({ error }) => Math.abs(error)),
    0.5,
  );
  const mute = guesses.length - told.length;
  return `  ${name.padEnd(48)} median ${percent(median)}  worst ${signed(worst.error)} (${worst.load})${mute === 0 ? '' : `, ${mute} not told`}`;
}

/** Keys and values of logged loads elsewhere, where such logs lie beside this repository. */
function evidenceLines(): readonly string[] {
  const cases = measuredFiles().flatMap((file) => {
    const given = measuredCase(file);
    const wanted = expectedKvMib(given);
    return wanted === null ? [] : [{ file, given, wanted }];
  });
  if (cases.length === 0) return [];
  const ours = cases.map(({ file, given, wanted }) => ({
    load: file,
    error: estimate(headerOf(given), flagsOf(given), 'cuda').kvBytes / MIB / wanted - 1,
  }));
  const plain = cases.map(({ file, given, wanted }) => ({
    load: file,
    error:
      plainCacheBytes(headerOf(given), ['-c', String(flagsOf(given).contextTokens ?? 0)]) / MIB / wanted - 1,
  }));
  return [
    `Keys and values alone, over ${cases.length} loads logged elsewhere on cards.`,
    errorLine('landlord, arithmetic', ours),
    errorLine('f16 KV of every layer (Ollama)', plain),
  ];
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

function signed(share: number): string {
  return `${share < 0 ? '−' : '+'}${percent(Math.abs(share))}`;
}
