import { formatBytes } from '../../shared/format.ts';
import type { CardResult, GpuReport } from './check.ts';

/** The report as a person reads it. */
export function reportText(report: GpuReport): string {
  const lines = [`NVIDIA check of ${report.at}, kernel ${report.kernel}, Node ${report.node}`, ''];
  if (report.nvmlWhy !== null) lines.push(`NVML can’t be used: ${report.nvmlWhy}`);
  if (report.smiWhy !== null) lines.push(`nvidia-smi can’t be used: ${report.smiWhy}`);
  if (report.cards.length === 0) {
    lines.push(
      'No NVIDIA card could be checked here: nothing is known of NVML’s figures, costs or processes from this run.',
    );
  }
  for (const card of report.cards) lines.push('', ...cardLines(card));
  lines.push('', 'Power');
  for (const one of report.power) {
    const figure = one.totalBytes === null ? 'not read' : 'read';
    lines.push(
      `  ${one.card}: ${one.maySuspend ? 'may suspend' : 'stays on'}; ${one.powerBefore} before ${one.readings} readings, ${one.powerAfter} after; ${figure}. ${one.notes.join(' ')}`,
    );
  }
  lines.push(
    `  ${report.missing.pciAddress}, which is not there: ${report.missing.error ?? 'no error was told'}${report.missing.totalBytes === null ? ' No figure.' : ' A FIGURE WAS GIVEN.'}`,
    '',
    'What the sampler says of this machine',
  );
  for (const one of report.sampler) {
    const figures =
      one.totalBytes === null
        ? 'no figures'
        : `${formatBytes(one.totalBytes)}, ${one.freeBytes === null ? 'free unknown' : `${formatBytes(one.freeBytes)} free`}`;
    lines.push(`  ${one.name}, by ${one.source}: ${one.error ?? figures}`);
  }
  for (const trouble of report.troubles) lines.push(`  ${trouble}`);
  return `${lines.join('\n')}\n`;
}

function cardLines({ card, fields, fieldsWhy, costs, attribution }: CardResult): readonly string[] {
  const lines = [`${card.name} at ${card.pciAddress}`, '  NVML against nvidia-smi'];
  if (fieldsWhy !== null) lines.push(`    not compared: ${fieldsWhy}`);
  for (const one of fields) {
    const nvml =
      one.nvmlBefore === one.nvmlAfter ? `${one.nvmlBefore}` : `${one.nvmlBefore} … ${one.nvmlAfter}`;
    lines.push(`    ${one.agrees ? 'same ' : 'DIFFERS'} ${one.field}: ${nvml} against ${one.smi}`);
  }
  lines.push('  Cost of a sample');
  for (const one of costs) {
    const figures =
      one.rounds === 0 ? 'not run' : `median ${one.medianMs.toFixed(3)} ms, worst ${one.worstMs.toFixed(3)}`;
    lines.push(`    ${one.what}: ${figures}, n=${one.rounds}`);
  }
  lines.push('  A program that takes known amounts');
  if (attribution?.why != null) lines.push(`    ${attribution.why}`);
  for (const one of attribution?.steps ?? []) {
    lines.push(
      `    ${one.step}: allocated ${bytes(one.allocatedBytes)}; NVML ${bytes(one.nvmlBytes)}, nvidia-smi ${bytes(one.smiBytes)}; card in use ${bytes(one.cardUsedBytes)}; the ledger ${one.ledgerRefuses === true ? 'refuses what is not free' : one.ledgerRefuses === null ? 'has no figures' : 'GIVES OUT WHAT IS NOT FREE'}`,
    );
  }
  const worst = (what: string, value: number | null): string =>
    `${what} is off by ${value === null ? 'an unknown amount' : `at most ${bytes(value)}`}`;
  lines.push(
    `    ${worst('NVML', attribution?.nvmlWorstBytes ?? null)}, ${worst('nvidia-smi', attribution?.smiWorstBytes ?? null)}.`,
  );
  return lines;
}

function bytes(value: number | null): string {
  return value === null ? 'unknown' : `${(value / 1024 ** 2).toFixed(1)} MiB`;
}
