import type { LandlordState } from '../../../shared/state.ts';

/**
 * What the demo says, without how it looks.
 *
 * act      the heading of an act
 * tell     a sentence of the story
 * aside    what explains, and is not part of it
 * event    an event of the runtime, in its own words
 * good     what went well · bad  what went wrong
 * code     a line to copy
 * memory   the card's memory as it is now
 */
export type StoryLine =
  | { readonly kind: 'act' | 'tell' | 'aside' | 'event' | 'good' | 'bad' | 'code'; readonly text: string }
  | { readonly kind: 'memory'; readonly state: LandlordState };

export interface Stage {
  say(lines: readonly StoryLine[]): void;
  /** The state has changed: where there is a live line, it shows it. */
  live(state: LandlordState): void;
}

/** Something did not happen as the story has it: told, and the demo fails. */
export class NotAsTold extends Error {}
