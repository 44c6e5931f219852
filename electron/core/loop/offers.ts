import { fail, type Result } from '../../../shared/errors.ts';
import type { OfferState } from '../../../shared/state.ts';
import type { CommandDone } from '../runtime-api.ts';

export interface Offer extends OfferState {
  readonly run: (signal: AbortSignal) => Promise<Result<CommandDone>>;
}

/** What is offered to a person and done by nobody else: each by an id that says what it is about. */
export class Offers {
  readonly #bySource = new Map<string, readonly Offer[]>();
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** All that this source offers from now on. */
  set(source: string, offers: readonly Offer[]): void {
    const before = this.#bySource.get(source) ?? [];
    if (offers.length === 0) this.#bySource.delete(source);
    else this.#bySource.set(source, offers);
    const told = (list: readonly Offer[]): string => JSON.stringify(list.map(shown));
    if (told(before) !== told(offers)) this.#changed();
  }

  list(): readonly OfferState[] {
    return [...this.#bySource.values()].flat().map(shown);
  }

  /** Once each: whoever comes second finds it gone. */
  async accept(id: string, signal: AbortSignal): Promise<Result<CommandDone>> {
    for (const [source, offers] of this.#bySource) {
      const offer = offers.find((one) => one.id === id);
      if (offer === undefined) continue;
      this.set(
        source,
        offers.filter((one) => one !== offer),
      );
      return await offer.run(signal);
    }
    return fail('bad_input', `Nothing of the name ${id} is offered now; \`landlord status\` says what is.`);
  }
}

function shown({ id, text, label, question }: Offer): OfferState {
  return { id, text, label, question };
}
