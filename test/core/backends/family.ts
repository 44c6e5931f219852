import type { ProcessFacts } from '../../../electron/core/process/identity.ts';
import type { ServerInspector } from '../../../electron/core/process/proof.ts';
import { fakeInspector } from '../../support/fake-llama.ts';
import type { Subject } from './subjects.ts';

/** A server's own process and one child of it, as /proc shows them. */
export function family(subject: Subject, ownPort: number, child: Partial<ProcessFacts>): ServerInspector {
  const parent: ProcessFacts = {
    pid: 100,
    startTimeTicks: 10,
    parentPid: 1,
    parentStartTimeTicks: 1,
    uid: 0,
    command: subject.program,
    listeningPorts: [ownPort],
    routerPort: null,
    cpuMs: 50,
    state: 'S',
  };
  const facts: ProcessFacts = {
    ...parent,
    pid: 4242,
    startTimeTicks: 20,
    parentPid: 100,
    parentStartTimeTicks: 10,
    cpuMs: 1_000,
    ...child,
  };
  const inspector = fakeInspector([parent, facts]);
  const all = [parent, facts];
  return {
    ...inspector,
    find: async (query) => {
      const { modelFile } = query;
      return query.port === 0 && modelFile !== undefined
        ? all.filter((one) => one.command?.some((word) => word.endsWith(modelFile)))
        : all.filter(
            (one) =>
              one.listeningPorts?.includes(query.port) === true ||
              one.command?.includes(String(query.port)) === true,
          );
    },
  };
}
