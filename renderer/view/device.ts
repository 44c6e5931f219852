/** One device's card. Pure; the time of the reading is left out, since it changes with every tick. */
import type { DeviceState, LandlordState } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { type Budget, budgetOf } from './budget.ts';
import { bytesText } from './figures.ts';
import { type Sentence, sentenceOf } from './sentence.ts';
import { shown } from './shown.ts';

export interface DeviceCard {
  readonly id: string;
  readonly name: string;
  readonly sentence: Sentence;
  /** `Radeon · 34.2 GB in all · drives this display · 26.1 GB in use`. */
  readonly facts: readonly string[];
  readonly budget: Budget | null;
  /** Sentences about the device that the main one does not say already. */
  readonly notes: readonly string[];
}

export function deviceCard(device: DeviceState, state: LandlordState): DeviceCard {
  const sentence = sentenceOf(device, state);
  const facts = [shown(device.name)];
  if (device.totalBytes !== null) facts.push(strings.device.total(bytesText(device.totalBytes)));
  if (device.unified && device.kind !== 'system') facts.push(strings.device.unified);
  if (device.drivesDisplay === true) facts.push(strings.device.drivesDisplay);
  if (device.usedBytes !== null) facts.push(strings.device.inUse(bytesText(device.usedBytes)));
  return {
    id: device.id,
    name: device.name,
    sentence,
    facts,
    budget: budgetOf(device, state),
    notes: device.notes.filter((note) => !isSaid(note, device, sentence)),
  };
}

/** The sentence of plain system memory says already that there is no GPU. */
function isSaid(note: string, device: DeviceState, sentence: Sentence): boolean {
  if (device.kind === 'system' && /\bno GPU\b/i.test(note)) return true;
  return sentence.detail?.includes(note) === true;
}
