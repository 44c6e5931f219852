import type { ProcessFacts } from '../../process/identity.ts';
import { serverProgram } from '../../process/programs.ts';

/**
 * The ports on which servers of kinds we know listen, from their processes. One that another of them has
 * started is its child, not a server to be watched by itself.
 */
export function serverPorts(processes: readonly ProcessFacts[]): readonly number[] {
  const servers = processes.filter(
    (process) => process.state !== 'Z' && process.command !== null && serverProgram(process.command) !== null,
  );
  const pids = new Set(servers.map((process) => process.pid));
  const ports = servers
    .filter((process) => process.routerPort === null && !pids.has(process.parentPid))
    .flatMap((process) => process.listeningPorts ?? []);
  return [...new Set(ports)];
}
