import { homedir, uptime } from 'node:os';
import type { Settings } from '../../shared/settings.ts';
import { systemdUnits } from './actuators/units.ts';
import { BackendWatch } from './backend-watch.ts';
import { makeBackend } from './backends/make-backend.ts';
import type { Box } from './box.ts';
import type { Clock } from './clock.ts';
import { ControlLoop } from './control-loop.ts';
import { ChildSampler } from './devices/sampler.ts';
import type { EngineDesk } from './engine/desk/desk.ts';
import { EmbeddedEngine } from './engine/embedded-engine.ts';
import { RequestLog } from './events/request-log.ts';
import { SqliteStore } from './events/sqlite-store.ts';
import { Syslog } from './events/syslog.ts';
import { createGate } from './gate/gate.ts';
import { settledWorld } from './gate/gate-world.ts';
import { createLaneWatch } from './gate/lane-watch.ts';
import { mountGateway } from './gateway/mount.ts';
import { summed } from './guests/open-guests.ts';
import { hostApi } from './host-api.ts';
import { footprintsInChild } from './ledger/footprint/footprint-source.ts';
import { referencesInChild } from './ledger/footprint/reference-source.ts';
import { Ledger } from './ledger/ledger.ts';
import { agentDesk, agentsRoom, engineProcess, putAgentAway, relieve } from './loop/agents.ts';
import { startChores } from './loop/chores.ts';
import { realEffects } from './loop/effects.ts';
import { Fleet } from './loop/fleet.ts';
import { durableForecaster, FOOTPRINTS } from './loop/forecaster.ts';
import { GatewayAgents } from './loop/gateway-agents.ts';
import { GatewayLane } from './loop/gateway-lane.ts';
import { Intents } from './loop/intents.ts';
import { Journal, NO_SYSTEM_LOG } from './loop/journal.ts';
import { laneUse } from './loop/lane-use.ts';
import { laneWatchAside } from './loop/lane-watch-aside.ts';
import { LaneWriter } from './loop/lane-writer.ts';
import { LaneBook } from './loop/lanes.ts';
import { LearnedFloors } from './loop/learned-floors.ts';
import type { CommandContext } from './loop/load-command.ts';
import { LoadWatch } from './loop/load-watch.ts';
import { Lookouts } from './loop/lookouts.ts';
import { noticesOf } from './loop/notices.ts';
import { Offers } from './loop/offers.ts';
import { type AgentsOf, Publisher } from './loop/publisher.ts';
import { ReportDesk } from './loop/reports.ts';
import { Reservations } from './loop/reservations.ts';
import { servicesOf } from './loop/services.ts';
import { TenantBook } from './loop/tenants.ts';
import { usedModels } from './loop/used-models.ts';
import { readWishes, WISHES, WishKeeper, withLateWishes } from './loop/wishes.ts';
import { openParking, parkingFor, parkOwn } from './parking/open-parking.ts';
import { processTree } from './process/process-tree.ts';
import type { RuntimeOptions } from './runtime.ts';
import { Sampling } from './sampling.ts';
import { readInChild } from './settings/config-reader.ts';
import { SettingsFile } from './settings/settings-file.ts';
import type { LandlordPaths } from './state-dir/paths.ts';
import { version } from './version.ts';

/** Reads settings and state, and starts watching. Nothing is listening yet. */
export async function assemble(
  options: RuntimeOptions,
  clock: Clock,
  env: Readonly<Record<string, string | undefined>>,
  paths: LandlordPaths,
): Promise<Box> {
  let tellTrouble: (event: Parameters<Journal['tell']>[0]) => void = () => {};
  const late: ((facts: ReadonlyMap<string, unknown>) => void)[] = [];
  const store = new SqliteStore({
    file: paths.databaseFile,
    now: clock.epochMs,
    onTrouble: (event) => tellTrouble(event),
    onLate(facts) {
      for (const takeUp of late) takeUp(facts);
    },
  });
  let systemLogNote: string | null = null;
  const systemLog = new Syslog({
    onMissing: (why) => {
      systemLogNote = why;
    },
  });
  const journal = new Journal(store, clock, options.systemLog === false ? NO_SYSTEM_LOG : systemLog);
  tellTrouble = (event) => journal.tell(event);

  const settingsFile = new SettingsFile({
    paths,
    home: homedir(),
    reader: readInChild(process.execPath),
    now: clock.epochMs,
    onSettings: (next) => void apply(next),
    onEvent: (event) => journal.tell(event),
  });
  const { settings } = await settingsFile.start();
  const ledger = new Ledger();
  const reservations = new Reservations({
    ledger,
    clock,
    tell: (event) => journal.tell(event),
    readTree: processTree,
    changed: () => loop.wake(),
  });
  const tenants = new TenantBook(
    () => reservations.holders(),
    () =>
      engineProcess(
        engine.host,
        () =>
          new Set(
            fleet.list().flatMap(({ snapshot }) => (snapshot.kind === 'embedded' ? [snapshot.name] : [])),
          ),
      ),
  );
  const gate = createGate(settledWorld(env));
  const lanes = new LaneBook(
    laneWatchAside(undefined, undefined, (readTable) => createLaneWatch(gate, readTable)),
  );
  const laneWriter = await LaneWriter.create(gate, journal, store);
  const gatewayLane = new GatewayLane(
    gate,
    (event) => journal.tell(event),
    () => laneWriter.troubled,
  );
  const followLane = (): void => {
    laneWriter.follow(fleet.settings(), loop.models.views());
    gatewayLane.follow(fleet.settings(), loop.models.views());
  };
  const floors = new LearnedFloors(store);
  const sampling = new Sampling({
    devices: settings.devices,
    create: (devices) => new ChildSampler({ devices, clock, compileCacheDir: `${paths.stateDir}/cache` }),
    onSamples(set) {
      if (reservations.look(set)) sampling.current.hurry();
      loop.onSamples(set);
      sampling.watch([
        ...loop.models.views().flatMap((view) => view.observed.process?.pid ?? []),
        ...reservations.list().flatMap((one) => one.pids),
        ...(engine.host.facts() === null ? [] : [engine.host.facts()?.pid ?? 0]),
      ]);
    },
  });
  const engine = new EmbeddedEngine(clock, paths.logDir, options.engine);
  const fleet = new Fleet(
    (setting) =>
      engine.backend(setting) ??
      makeBackend(
        setting,
        clock,
        env,
        () => sampling.current,
        (id) => (gateway.use(id)?.requests ?? 0) > 0,
        { cwd: paths.configDir, logFolder: paths.logDir, slotFolder: paths.parkedDir },
      ),
    (change) => loop.onBackendChange(change),
  );
  const reference = referencesInChild({ nodePath: process.execPath });
  const forecaster = await durableForecaster(store, () => loop.settings, { reference });
  late.push((facts) => forecaster.takeUp?.(facts.get(FOOTPRINTS)));
  const loads = new LoadWatch(
    forecaster,
    () => loop.wake(),
    () => ledger.bookings(),
  );
  const intents = new Intents(store);
  const wishKeeper = new WishKeeper(store);
  const parking = parkingFor({
    context: () => context,
    gate,
    store,
    isWanted: (modelId) => gateway.use(modelId) !== null,
    changed: () => loop.wake(),
  });
  const parkingNote = await openParking(parking, paths.parkedDir, store.trouble() === null);
  const loop: ControlLoop = new ControlLoop({
    clock,
    ledger,
    fleet,
    journal,
    intents,
    tenants,
    lanes,
    floors,
    loads,
    settings,
    wishes: await readWishes(store),
    effects: realEffects(fleet, () => sampling.current, parking),
    onLoaded: (view) => parking.loaded(view),
    bootMs: () => uptime() * 1000,
    uses: (modelId) => gateway.use(modelId) ?? laneUse(lanes.list(), modelId),
    relieve: (devices) => summed(lookouts.guests.relieve(devices), relieve(desk, context, devices)),
    agents: agentsRoom(() => ({ desk, context, sampler: sampling.current })),
    guests: (deviceId, why) => lookouts.guests.makeRoom(deviceId, why),
    onStep: () => {
      publisher.stepped();
      followLane();
    },
    onWishes: (wishes) => wishKeeper.write(wishes),
  });
  late.push((facts) => loop.setWishes(withLateWishes(loop.wishes, facts.get(WISHES))));
  const offers = new Offers(() => loop.wake());
  const lookouts = new Lookouts({ context: () => context, offers, sampler: () => sampling.current });
  const context: CommandContext = {
    loop,
    fleet,
    ledger,
    journal,
    loads,
    clock,
    inFlight: new Map(),
    offers,
    services: servicesOf(fleet, () => sampling.current, options.units ?? systemdUnits()),
    agentsHold: () => desk?.holding() ?? [],
    putAgentAway: async (name, force) => (desk === null ? null : await putAgentAway(desk, name, force)),
  };
  const reports = new ReportDesk(journal, () => backends.list, clock);
  const gateway = mountGateway({
    context,
    gate,
    env: engine.withKey(env),
    report: (event) => reports.take(event),
    requests: new RequestLog(store),
    parking,
    onRequest(record) {
      callers.note(record, clock.monotonicMs());
      if (record.backend !== null && record.route !== 'refused') lanes.served(record.backend);
      lookouts.slow.served(record);
    },
    ...(options.gatewayPace === undefined ? {} : { pace: options.gatewayPace }),
  });
  const callers = new GatewayAgents();
  let desk: EngineDesk | null = null;
  const agents: AgentsOf = (iso, models) => [
    ...(desk?.states(iso) ?? []),
    ...callers.list({
      flights: gateway.flights(),
      lanes: lanes.list(),
      models,
      nowMs: clock.monotonicMs(),
      epochMs: clock.epochMs(),
      iso,
    }),
  ];
  const publisher = new Publisher({
    loop,
    fleet,
    ledger,
    tenants,
    lanes,
    clock,
    version: version(),
    agents,
    parked: (modelId) => parking.parked(modelId),
    usual: (deviceId) => floors.levels(deviceId),
    offers: () => offers.list(),
    fallbacks: (iso) => gateway.fallbacks(iso),
    notices: () => noticesOf(settingsFile, store, fleet, loop, systemLogNote, options.configPath, env),
  });
  for (const event of await intents.takeOpen()) journal.tell(event);
  if (parkingNote !== null) journal.tell({ kind: 'parking_failed', reason: parkingNote, numbers: {} });

  const backends = new BackendWatch({
    clock,
    sampler: () => sampling.current,
    ports: options.discoverPorts,
    named: () => loop.settings.backends,
    async watch(chosen) {
      const reachable = await engine.withUrls(chosen);
      await Promise.all([fleet.set(reachable), gateway.front(reachable)]);
      followLane();
    },
  });
  const apply = async (next: Settings): Promise<void> => {
    loads.forget();
    laneWriter.write(next.backends);
    loop.setSettings(next);
    await sampling.follow(next.devices);
    await backends.watch();
    await backends.look();
  };
  laneWriter.write(settings.backends);
  sampling.start();
  await backends.watch();
  const openDesk = await agentDesk({
    context,
    host: engine.host,
    store,
    footprints: footprintsInChild(process.execPath),
    serves: (path) => engine.serves(path),
    stateDir: paths.stateDir,
    hurry: () => sampling.current.hurry(),
  });
  desk = openDesk;
  void backends.look();
  // What is only tried out has no kernel of its own.
  if (options.systemLog !== false) lookouts.start();
  const stopChores = startChores({
    lookEveryMs: options.lookEveryMs,
    look() {
      void backends.look();
      void parking.tidy();
      void lookouts.look();
    },
    learn: () => void floors.learn(loop.sight.devices(), clock.epochMs()),
    record(everyMs) {
      const used = usedModels(loop, clock.monotonicMs(), everyMs);
      tenants.record(loop.sight, store, clock.epochMs(), used);
    },
  });

  let url: string | null = null;
  const stopping = new AbortController();
  const api = hostApi({
    context,
    publisher,
    store,
    settingsFile,
    reports,
    reservations,
    wishKeeper,
    env,
    desk: () => desk,
    url: () => url,
    stopping: stopping.signal,
  });
  return {
    api,
    loop,
    journal,
    gateway,
    desk: openDesk,
    listens: (where) => {
      url = where;
      gatewayLane.listens(Number(new URL(where).port));
      followLane();
    },
    async stop() {
      stopping.abort();
      gatewayLane.stop();
      await gateway.stop();
      await openDesk.stop();
      await parkOwn(fleet, loop, parking);
      stopChores();
      lookouts.stop();
      loop.stop();
      reference.stop();
      await settingsFile.stop();
      await Promise.all([fleet.stop(), sampling.stop()]);
      await engine.stop();
      await journal.flushed();
      await store.close();
    },
  };
}
