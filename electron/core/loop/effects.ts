import { setTimeout as sleep } from 'node:timers/promises';
import { fail, type Result } from '../../../shared/errors.ts';
import type { Effects } from '../actuators/effects.ts';
import { type ArmedSignal, armSignal } from '../actuators/reaper.ts';
import { afterIo } from '../after-io.ts';
import type { BusyAnswer } from '../backends/backend.ts';
import type { Sampler } from '../devices/sampler.ts';
import type { Parking } from '../parking/parking.ts';
import type { ProcessIdentity } from '../process/identity.ts';
import type { Fleet } from './fleet.ts';

const ASK_LIMIT_MS = 4_000;
/**
 * Starting a process holds this one up for some milliseconds, in which a request just made is not sent.
 * The reaper is wanted at the end of the grace, the unload now.
 */
const ARM_AFTER_MS = 20;

/** The real effects: backends over HTTP, signals through the reaper, readings from the sampler. */
export function realEffects(fleet: Fleet, sampler: () => Sampler, parking?: Parking): Effects {
  /** The last proven process of each model, for the question whether it is gone. */
  const identities = new Map<string, ProcessIdentity>();
  let hurrying = false;

  const locate = (modelId: string): { readonly backend: string; readonly name: string } => {
    const slash = modelId.indexOf('/');
    return { backend: modelId.slice(0, slash), name: modelId.slice(slash + 1) };
  };
  const identityOf = (modelId: string): ProcessIdentity | null => {
    const { backend, name } = locate(modelId);
    const model = fleet
      .get(backend)
      ?.snapshot()
      .models.find((one) => one.name === name);
    const identity = model?.process ?? null;
    if (identity !== null) identities.set(modelId, identity);
    return identity;
  };

  return {
    confirmIdle(modelId): Promise<BusyAnswer> {
      const { backend, name } = locate(modelId);
      const member = fleet.get(backend);
      if (member === null) return Promise.resolve({ busy: null, why: `${backend} is no longer watched` });
      return member.confirmIdle(name, AbortSignal.timeout(ASK_LIMIT_MS));
    },
    async park(modelId, limitMs): Promise<boolean> {
      return parking === undefined ? false : (await parking.park(modelId, limitMs)) > 0;
    },
    unpark(modelId): void {
      void parking?.unpark(modelId);
    },
    unload(modelId): Promise<Result<void>> {
      identityOf(modelId);
      const { backend, name } = locate(modelId);
      const member = fleet.get(backend);
      if (member === null)
        return Promise.resolve(fail('unknown_backend', `${backend} is no longer watched.`));
      return member.unload(name, AbortSignal.timeout(ASK_LIMIT_MS));
    },
    async arm(modelId): Promise<Result<ArmedSignal>> {
      const identity = identityOf(modelId) ?? identities.get(modelId) ?? null;
      if (identity === null) {
        const { backend, name } = locate(modelId);
        const note = fleet
          .get(backend)
          ?.snapshot()
          .models.find((one) => one.name === name)?.processNote;
        return fail(
          'not_proven',
          `${note ?? `${modelId} has no proven process.`} As the next best, set \`stop-timeout\` in the router's preset to a second or two: the router then ends a busy model sooner by itself.`,
        );
      }
      await sleep(ARM_AFTER_MS);
      return armSignal(identity);
    },
    refresh(modelId): void {
      void fleet.get(locate(modelId).backend)?.refresh();
    },
    async processGone(modelId): Promise<boolean | null> {
      const identity = identities.get(modelId);
      if (identity === undefined) return null;
      const answer = await sampler().facts([identity.pid]);
      if (!answer.ok) return null;
      const present = answer.value.find((facts) => facts.pid === identity.pid);
      return (
        present === undefined || present.startTimeTicks !== identity.startTimeTicks || present.state === 'Z'
      );
    },
    sampleSoon(): void {
      if (hurrying) return;
      hurrying = true;
      afterIo(() => {
        hurrying = false;
        sampler().hurry();
      });
    },
    lookAgain(): void {
      sampler().lookAgain();
    },
  };
}
