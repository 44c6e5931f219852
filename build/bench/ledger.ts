import type { Booking } from '../../electron/core/ledger/booking.ts';
import { Ledger } from '../../electron/core/ledger/ledger.ts';
import { type BenchReport, type BenchSide, figures } from './report.ts';

const SIZES = [10, 1_000, 100_000];
const DEVICE = 'sim:0';
const TOTAL_BYTES = 1e15;
/** One admission is too short for the clock. */
const PER_SAMPLE = 64;

/**
 * What booking and giving back one line costs, by how many lines the book holds already; beside the
 * plain way, which adds up every line to know what is booked. Each admits the same.
 */
export async function benchLedger(short = false): Promise<BenchReport> {
  const ours = SIZES.map((lines) => ({ name: `ours, ${lines} lines in the book`, run: ourBook(lines) }));
  const plain = SIZES.map((lines) => ({ name: `adding up, ${lines} lines`, run: plainBook(lines) }));
  const all = [...ours, ...plain].map((side) => ({ ...side, samplesUs: [] as number[] }));
  const rounds = short ? 20 : 400;
  for (let round = 0; round < rounds; round += 1) {
    for (const side of all) {
      // Adding up 100 000 lines 64 times is a quarter of a second: once tells as much.
      const times = side.name.startsWith('adding up, 100000') ? 1 : PER_SAMPLE;
      const beganAtMs = performance.now();
      for (let i = 0; i < times; i += 1) side.run();
      if (round >= rounds / 10) side.samplesUs.push(((performance.now() - beganAtMs) * 1000) / times);
    }
  }
  const sides: readonly BenchSide[] = all;
  const report = figures(sides);
  const [few, , many] = report;
  const rate =
    few === undefined ? '' : `${Math.round(1e6 / few.medianUs).toLocaleString('en')} admissions a second`;
  const growth = few === undefined || many === undefined ? Number.NaN : many.medianUs / few.medianUs;
  return {
    part: 'ledger',
    sides: report,
    notes: [
      `${rate} with ${SIZES[0]} lines; with ${SIZES.at(-1)} lines one costs ${growth.toFixed(2)} × as much.`,
    ],
  };
}

function ourBook(lines: number): () => void {
  const ledger = new Ledger();
  ledger.setLimits(DEVICE, {
    totalBytes: TOTAL_BYTES,
    capBytes: TOTAL_BYTES,
    floorBytes: 0,
    hardFloorBytes: 0,
  });
  ledger.reconcile(DEVICE, {
    driverFreeBytes: TOTAL_BYTES,
    hostAvailableBytes: null,
    totalBytes: TOTAL_BYTES,
    unified: false,
    sampledAtMs: 0,
  });
  const ask = (id: string): void => {
    const booked = ledger.reserve({
      id,
      kind: 'agent',
      name: id,
      deviceId: DEVICE,
      predictedBytes: 1e6,
      nowMs: 0,
    });
    if (!booked.ok) throw new Error(booked.error.message);
  };
  for (let i = 0; i < lines; i += 1) ask(`line ${i}`);
  // A name of its own each time, as requests have: V8 leaves what was deleted from a Map in its name's chain
  // until it grows, so the same name a hundred thousand times over in a long book is slow (10 µs at 1 000 lines).
  let asked = 0;
  return () => {
    asked += 1;
    const id = `one more ${asked}`;
    ask(id);
    ledger.release(id);
  };
}

/** What one writes first: an array of lines, and the sums from all of them each time. */
function plainBook(lines: number): () => void {
  const book = Array.from(
    { length: lines },
    (_, i): Pick<Booking, 'id' | 'predictedBytes'> => ({
      id: `line ${i}`,
      predictedBytes: 1e6,
    }),
  );
  return () => {
    const bookedBytes = book.reduce((sum, line) => sum + (line.predictedBytes ?? 0), 0);
    if (bookedBytes + 1e6 > TOTAL_BYTES) throw new Error('full');
    book.push({ id: 'one more', predictedBytes: 1e6 });
    book.splice(
      book.findIndex((line) => line.id === 'one more'),
      1,
    );
  };
}
