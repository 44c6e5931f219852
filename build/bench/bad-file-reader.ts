import { readPlannedModel } from '../../electron/core/ledger/footprint/footprint-of-load.ts';

/** Reads one file as `landlord estimate` does, and says how long it took and how much memory this process had at most. */
const beganAtMs = performance.now();
const header = await readPlannedModel(process.argv[2] ?? '');
const ms = performance.now() - beganAtMs;
const bytes = process.resourceUsage().maxRSS * 1024;
process.stdout.write(JSON.stringify({ ms, bytes, sentence: header.ok ? null : header.error.message }));
