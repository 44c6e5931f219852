/** Takes three turns and says as JSON what they got and what was reported: URL. */
import { createGate } from '../../electron/core/gate/gate.ts';

const gate = createGate();
const reports: string[] = [];
const kinds = Array.from({ length: 3 }, () => {
  using turn = gate.tryTurn(process.argv[2], { onReport: (report) => reports.push(report.reason) });
  return turn.kind;
});
process.stdout.write(JSON.stringify({ kinds, reports }));
