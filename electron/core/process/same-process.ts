import type { ProcessFacts, ProcessIdentity } from './identity.ts';

/**
 * Whether what /proc says now is still the process that was recorded (rule 10): pid, start time,
 * command line, listening port and parent. What can't be read counts against it, never for it.
 *
 * Returns null when everything matches, else a sentence that names the first difference.
 */
export function differenceFrom(identity: ProcessIdentity, facts: ProcessFacts | null): string | null {
  if (facts === null) return `process ${identity.pid} is gone`;
  if (facts.pid !== identity.pid) return `pid ${facts.pid} is not the recorded ${identity.pid}`;
  if (facts.startTimeTicks !== identity.startTimeTicks)
    return `pid ${identity.pid} now belongs to another process (it started at another time)`;
  if (facts.state === 'Z' || facts.state === 'X') return `process ${identity.pid} has already ended`;
  if (facts.command === null) return `the command line of process ${identity.pid} can't be read`;
  if (!sameWords(facts.command, identity.command))
    return `process ${identity.pid} runs another command line than was recorded`;
  if (facts.parentPid !== identity.parentPid)
    return `process ${identity.pid} has parent ${facts.parentPid}, recorded was ${identity.parentPid}`;
  if (
    identity.parentStartTimeTicks !== null &&
    facts.parentStartTimeTicks !== null &&
    facts.parentStartTimeTicks !== identity.parentStartTimeTicks
  )
    return `the parent of process ${identity.pid} is another process than was recorded`;
  if (facts.listeningPorts === null)
    return `the ports of process ${identity.pid} can't be read (another user, or a container)`;
  if (!facts.listeningPorts.includes(identity.port))
    return `process ${identity.pid} does not listen on port ${identity.port}`;
  return null;
}

function sameWords(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((word, index) => word === b[index]);
}
