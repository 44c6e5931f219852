/** The whole page as plain data, from one snapshot and the events. Pure, and shared with the last one. */
import type { LandlordEvent } from '../../shared/events.ts';
import type { GuardsMode, LandlordState } from '../../shared/state.ts';
import { type AgentSlot, agentSlots } from './agents.ts';
import { type DeviceCard, deviceCard } from './device.ts';
import { type EventsCard, eventsCard } from './events.ts';
import { type LaneCard, laneCards } from './lanes.ts';
import { type ModelsCard, modelsCard } from './models.ts';

export interface Page {
  readonly guards: GuardsMode;
  readonly guardsPausedUntil: string | null;
  readonly asleep: LandlordState['asleep'];
  readonly notices: LandlordState['notices'];
  /** What waits for a person's word. */
  readonly offers: NonNullable<LandlordState['offers']>;
  readonly devices: readonly DeviceCard[];
  /** Empty where nobody uses models by name. */
  readonly agents: readonly AgentSlot[];
  readonly models: ModelsCard;
  /** Empty where no lane is set or used. */
  readonly lanes: readonly LaneCard[];
  readonly events: EventsCard;
  readonly version: string;
}

const NONE: Page['offers'] = [];

export function pageOf(state: LandlordState, events: readonly LandlordEvent[]): Page {
  return {
    guards: state.policy.guards,
    guardsPausedUntil: state.policy.guardsPausedUntil,
    asleep: state.asleep,
    notices: state.notices,
    offers: state.offers ?? NONE,
    devices: state.devices.map((device) => deviceCard(device, state)),
    agents: agentSlots(state),
    models: modelsCard(state),
    lanes: laneCards(state, events),
    events: eventsCard(events, state),
    version: state.version,
  };
}
