import https from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { randomOf } from '@wheelhouse/machinery';
import {
  buildPrograms,
  type Programs,
  type ServerProcess,
  startProcess,
} from '../support/program.ts';
import { variants } from './growth-shapes.ts';
import {
  onServer,
  type SiegeFigures,
  type SiegeOptions,
  type SiegePart,
  timeLimit,
} from './part.ts';
import { type StepCase, type StepRequest, versionPlace } from './step-case.ts';
import { everyStep, namedSteps, preparations, stepOfKinds } from './step-requests.ts';

/**
 * Measures the longest step of one request: the CPU time of a server's main thread between two
 * turns of the event loop (TRUST-2). `STEPS_ONLY` selects requests by a pattern of their names;
 * `STEPS_PROFILE` adds the functions of the longest step, which slows it down.
 * `STEPS_EVERY=distinct` instead creates objects of every kind, filling one of its collections at a
 * time (also `equal`, `invalid`, `unknown`).
 * `STEPS_FORM` names another verb or encoding for these (`create in YAML`, `apply`, `update`).
 * `STEPS_STORED=1` stores them, so that controllers read them.
 */
export const stepsPart: SiegePart = {
  name: 'steps',
  summary:
    'The longest uninterrupted step of large requests, in CPU time of the main thread; a round ' +
    'is one request, sent several times.',
  defaultRounds: 200,
  run,
};

const probe = fileURLToPath(new URL('step-probe.mjs', import.meta.url));

/**
 * How often a request is sent, and which of the measurements counts, because compilers start cold.
 */
const samples = 5;
const warmUps = 2;
const coldSamples = 3;

/** Default of `StepCase.settleMs` after an answer. */
const usualSettleMs = 50;

/** A first measurement below this number of CPU milliseconds is not repeated; the bound is 20. */
const repeatedFromMs = 12;

async function run(options: SiegeOptions): Promise<SiegeFigures> {
  const { seed, rounds, log } = options;
  const isOver = timeLimit(options);
  const programs = await buildPrograms();
  const start = () => MeasuredServer.start(programs);
  let shared: MeasuredServer | undefined;
  try {
    const figures: Record<string, string> = {};
    const only = new RegExp(process.env['STEPS_ONLY'] ?? '');
    let round = 0;
    for (const stepCase of requestsOf(seed)) {
      round += 1;
      if (round > rounds || isOver()) break;
      if (!only.test(stepCase.name)) continue;
      if (stepCase.isCold !== true) shared ??= await start();
      const measured =
        stepCase.isCold === true
          ? await coldSteps(start, stepCase)
          : await warmSteps(shared as MeasuredServer, stepCase, round);
      figures[stepCase.name] = measured;
      log(`${measured}  ${stepCase.name}`);
    }
    return figures;
  } finally {
    await shared?.stop();
    programs.remove();
  }
}

/** The requests of a run; infinite unless they are all of one variant. */
function* requestsOf(seed: number): Generator<StepCase> {
  const every = variants.find((variant) => variant === process.env['STEPS_EVERY']);
  if (every !== undefined) {
    const formName = process.env['STEPS_FORM'];
    const isStored = process.env['STEPS_STORED'] !== undefined;
    yield* everyStep({ variant: every, formName, isStored });
    return;
  }
  yield* namedSteps;
  const { pick } = randomOf(seed);
  for (;;) yield stepOfKinds(pick);
}

/** The figure of a request to a newly started server. */
async function coldSteps(
  start: () => Promise<MeasuredServer>,
  stepCase: StepCase,
): Promise<string> {
  const runs: Measured[] = [];
  for (let sample = 0; sample < coldSamples; sample += 1) {
    const server = await start();
    try {
      runs.push(await server.measure(stepCase, stepCase.make(`cold-${sample}`, 1)));
    } finally {
      await server.stop();
    }
  }
  return figureOf(runs);
}

/** The figure of a request to a server that has answered the same request before. */
async function warmSteps(
  server: MeasuredServer,
  stepCase: StepCase,
  round: number,
): Promise<string> {
  const runs: Measured[] = [];
  let scale = 1;
  while (runs.length < samples + warmUps && scale > 0.05) {
    const run = await server.measure(stepCase, stepCase.make(`${round}-${runs.length}`, scale));
    // A body above the limit says nothing about allowed ones.
    if (run.status === 413 && runs.length === 0) scale *= 0.85;
    else runs.push(run);
    if (runs.length > warmUps && run.longestMs < repeatedFromMs) break;
  }
  return figureOf(runs.slice(warmUps));
}

/** The median of the longest steps, with the last answer's status and the body's size. */
function figureOf(runs: readonly Measured[]): string {
  const sorted = [...runs].sort((left, right) => left.longestMs - right.longestMs);
  const { longestMs = Number.NaN, functions = [] } = sorted[sorted.length >> 1] ?? {};
  const { status = 0, bytes = 0 } = runs.at(-1) ?? {};
  const figure = `${longestMs.toFixed(1)} ms, status ${status}, ${Math.ceil(bytes / 1024)} KiB`;
  return [figure, ...functions].join('\n    ');
}

interface Measured {
  readonly longestMs: number;
  readonly status: number;
  readonly bytes: number;
  /** The functions of the longest step, if it is profiled. */
  readonly functions?: readonly string[];
}

/** Inserts a version into the request if its body has a place for one. */
function versioned(request: StepRequest, version: string): StepRequest {
  const { body } = request;
  const at = body?.indexOf(versionPlace) ?? -1;
  if (body === undefined || at < 0) throw new Error(`no place for a version: ${request.path}`);
  const place = JSON.stringify(version);
  const rest = body.subarray(at + versionPlace.length);
  return { ...request, body: Buffer.concat([body.subarray(0, at), Buffer.from(place), rest]) };
}

/** A server that measures its steps, and a client that sends it one request at a time. */
class MeasuredServer {
  readonly #server: ServerProcess;
  readonly #agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
  #measurements = 0;

  private constructor(server: ServerProcess) {
    this.#server = server;
    server.child.stderr?.setMaxListeners(0);
    server.child.setMaxListeners(0);
  }

  static async start(programs: Programs): Promise<MeasuredServer> {
    const server = await startProcess(programs, {
      flags: [
        '--feature-gates=CBORServingAndStorage=true',
        '--dialect=svc',
        '--authorization-mode=Node,RBAC',
      ],
      env: { NODE_OPTIONS: `--import=${probe}` },
    });
    const started = new MeasuredServer(server);
    for (const request of preparations) await started.#mustSend(request);
    return started;
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.#server.remove();
  }

  /** Sends one request between its preparations and its cleanup, and measures only that request. */
  measure(
    { name, settleMs }: Pick<StepCase, 'name' | 'settleMs'>,
    made: ReturnType<StepCase['make']>,
  ): Promise<Measured> {
    return onServer({ name, server: this.#server }, () => this.#measure(made, settleMs));
  }

  async #measure(
    { before = [], request, after = [] }: ReturnType<StepCase['make']>,
    settleMs: number | undefined,
  ): Promise<Measured> {
    let version = '';
    for (const preparation of before) {
      const { status, text } = await this.#send(preparation);
      if (status >= 300) return { longestMs: Number.NaN, status, bytes: 0 };
      version = /"resourceVersion":"(\d+)"/.exec(text)?.[1] ?? '';
    }
    if (settleMs !== undefined) await pause(settleMs);
    const sent = request.isVersioned === true ? versioned(request, version) : request;
    await this.#toggle('begins');
    const { status } = await this.#send(sent);
    await pause(settleMs ?? usualSettleMs);
    const line = await this.#toggle('ends');
    for (const cleanup of after) await this.#send(cleanup);
    const functions = line['functions'] as readonly string[] | undefined;
    const bytes = request.body?.length ?? 0;
    const longestMs = Number(line['longestMs']);
    return { longestMs, status, bytes, ...(functions === undefined ? {} : { functions }) };
  }

  /** Starts or ends a measurement. */
  #toggle(what: 'begins' | 'ends') {
    if (what === 'begins') this.#measurements += 1;
    this.#server.child.kill('SIGUSR2');
    return this.#server.logged(`measurement ${this.#measurements} ${what}`);
  }

  async #mustSend(request: StepRequest): Promise<void> {
    const { status, text } = await this.#send(request);
    if (status >= 300) throw new Error(`${request.method} ${request.path}: ${status} ${text}`);
  }

  #send(request: StepRequest): Promise<{ readonly status: number; readonly text: string }> {
    const { method, path, type, body, accept } = request;
    const headers = {
      authorization: `Bearer ${this.#server.token}`,
      ...(type === undefined ? {} : { 'content-type': type }),
      ...(accept === undefined ? {} : { accept }),
      ...(body === undefined ? {} : { 'content-length': body.length }),
      ...(request.user === undefined ? {} : { 'impersonate-user': request.user }),
    };
    return new Promise((resolve, reject) => {
      const options = { method, headers, agent: this.#agent, rejectUnauthorized: false };
      const sent = https.request(new URL(path, this.#server.url), options, (answer) => {
        let text = '';
        answer.on('data', (chunk: Buffer) => {
          if (text.length < 2000) text += chunk.toString('latin1');
        });
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }
}
