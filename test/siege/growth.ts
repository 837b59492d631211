import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { builtinKinds, type ResourceDef, type VersionDef } from '@wheelhouse/kinds';
import {
  dialectOf,
  errorText,
  isObject,
  itemAt,
  type JsonObject,
  listedBytesMax,
  listedMax,
  type Random,
  randomOf,
} from '@wheelhouse/machinery';
import { collectGarbage } from '@wheelhouse/machinery/testing';
import { authority } from '../authentication/forged-certificates.ts';
import { processCpuMs } from '../support/cpu-time.ts';
import {
  type Answer,
  freshNamespace,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { sendShowing } from './growth-certificates.ts';
import { type AnswerForm, answers, type Form, forms, methods, placeOf } from './growth-forms.ts';
import { definitions, plainCases, ruledDefinition } from './growth-requests.ts';
import {
  type Collection,
  collectionsOf,
  filled,
  type Place,
  replaced,
  textsOf,
  units,
  type Variant,
  variants,
} from './growth-shapes.ts';
import { type SiegePart, timeLimit } from './part.ts';

/** One request as it is sent. */
export interface GrowthRequest {
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  /** The requested encoding of the answer; JSON if absent. */
  readonly accept?: string;
  readonly body?: string | Buffer;
  /** Sent as a user who may write roles but has few permissions. */
  readonly impersonated?: true;
  /** PEM certificates presented instead of a token, on a separate connection. */
  readonly chain?: string;
}

/** A request of any size. */
interface GrowthCase {
  readonly name: string;
  make(count: number): GrowthRequest;
}

/** Number of items of the smallest request; the largest has eight times as many. */
const leastCount = 1000;
const growth = 8;

/**
 * Maximum CPU time of the largest request: the time of the smallest times the ratio of their items,
 * times three for n log n, garbage collection, and other programs. Times below the floor are not
 * compared, because no quadratic behavior that matters stays below it at these sizes.
 */
const slack = 3;
const floorMs = 150;
/** Number of runs of a request whose lowest costs are compared. */
const runsMax = 3;

/**
 * Heap growth during a request from which it is compared, in MiB. It is compared like CPU time, and
 * includes garbage that V8 has not yet collected.
 */
const heapFloorMb = 128;
/** How often the heap is measured while a request runs, in milliseconds. */
const heapSampleMs = 2;

/** Maximum growth of resident memory by one request, including garbage, in MiB. */
const memoryMbMax = 768;

/**
 * Maximum size of a refusal in bytes: the texts in its message and causes, each character of which
 * JSON may escape.
 */
const refusalBytesMax = 2 * listedBytesMax + 8192;

/** Fraction of the requests of kinds that have a long text instead of a long collection. */
const textsShare = 0.3;
/** Characters of a long text for each item of a collection; JSON writes up to six bytes for each. */
const charactersPerItem = 50;

/** Number of faults after which a run ends. */
const faultsMax = 20;

const dialect = dialectOf('svc');
const few = 'growth-user';

export const growthPart: SiegePart = {
  name: 'growth',
  summary: 'Bodies, queries, patches and roles of growing sizes; a round is one of them.',
  defaultRounds: 2000,
  async run(options) {
    const { seed, rounds, log } = options;
    const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-growth-'));
    const clientCaFile = join(directory, 'ca.crt');
    writeFileSync(clientCaFile, authority.pem());
    const server = await startTestServer({ cborServed: true, authentication: { clientCaFile } });
    const isOver = timeLimit(options);
    try {
      const cases = await casesOf(server);
      const random = randomOf(seed);
      let cpuMsMax = 0;
      let memoryMbMost = 0;
      let heapMbMost = 0;
      let slowest = '';
      let round = 0;
      const faults: string[] = [];
      for (; round < rounds && !isOver(); round += 1) {
        // Requests that belong to no kind come first: they are few, and each is a known attack.
        const plain = cases.plain[round];
        const growthCase = plain ?? cases.ofKinds(random);
        const fault = await growthFault(server, growthCase, ({ cpuMs, memoryMb, heapMb }) => {
          if (cpuMs > cpuMsMax) [cpuMsMax, slowest] = [cpuMs, growthCase.name];
          memoryMbMost = Math.max(memoryMbMost, memoryMb);
          heapMbMost = Math.max(heapMbMost, heapMb);
        }).catch(errorText);
        if (fault !== undefined) {
          faults.push(`seed ${seed}, round ${round}: ${growthCase.name}: ${fault}`);
          log(faults.at(-1) ?? '');
          if (faults.length === faultsMax) break;
        }
        if (round % 100 === 99) log(`${round + 1} requests, at most ${cpuMsMax} ms of CPU`);
      }
      if (faults.length > 0) throw new Error(faults.join('\n'));
      return {
        requests: round,
        cpuMsMax,
        slowest,
        memoryMbMax: memoryMbMost,
        heapMbMax: heapMbMost,
      };
    } finally {
      await server.stop();
      rmSync(directory, { recursive: true });
    }
  },
};

/** Why the costs of a request grow too fast; undefined if they do not. */
async function growthFault(
  server: TestServer,
  growthCase: GrowthCase,
  measured: (costs: Costs) => void,
): Promise<string | undefined> {
  const large = await measure(server, growthCase.make(leastCount * growth));
  measured(large);
  if (large.fault !== undefined) return large.fault;
  if (large.memoryMb > memoryMbMax) return `the memory grows by ${large.memoryMb} MiB`;
  if (large.cpuMs < floorMs && large.heapMb < heapFloorMb) return undefined;
  // The request was expensive. Compare the best of several runs, which other programs' load does
  // not affect.
  const isLarge = large.heapMb >= heapFloorMb;
  const run = (count: number) => {
    if (isLarge) collectGarbage();
    return measure(server, growthCase.make(count));
  };
  let least: Compared = await run(leastCount);
  for (let runs = 1; runs < runsMax; runs += 1) least = lower(least, await run(leastCount));
  // A heap with garbage may seem to grow less than it does.
  let most: Compared = {
    cpuMs: large.cpuMs,
    heapMb: isLarge ? Number.POSITIVE_INFINITY : large.heapMb,
  };
  // A further run can only lower the best costs: runs that acquit a request need no other.
  for (let runs = 0; runs < runsMax && fastGrowth(least, most) !== undefined; runs += 1) {
    most = lower(most, await run(leastCount * growth));
  }
  return fastGrowth(least, most);
}

/** The costs by which a request of one size is compared with one of another. */
type Compared = Pick<Costs, 'cpuMs' | 'heapMb'>;

function lower(left: Compared, right: Compared): Compared {
  return { cpuMs: Math.min(left.cpuMs, right.cpuMs), heapMb: Math.min(left.heapMb, right.heapMb) };
}

/** How the costs of the largest request exceed those of the smallest; undefined if they do not. */
function fastGrowth(least: Compared, most: Compared): string | undefined {
  if (growsFast([least.cpuMs, most.cpuMs], floorMs)) {
    return `CPU time grows faster than the request: from ${least.cpuMs} to ${most.cpuMs} ms`;
  }
  if (growsFast([least.heapMb, most.heapMb], heapFloorMb)) {
    return `the heap grows faster than the request: from ${least.heapMb} to ${most.heapMb} MiB`;
  }
  return undefined;
}

/**
 * Whether the cost of the largest request is above `floor` and grows faster than n log n, with
 * slack.
 */
function growsFast([least, most]: readonly [number, number], floor: number): boolean {
  return most >= floor && most > least * growth * slack;
}

/** The cost of one request for this process, which contains both client and server. */
interface Costs {
  readonly cpuMs: number;
  readonly memoryMb: number;
  /** Maximum growth of the heap during the request, in MiB. */
  readonly heapMb: number;
  readonly fault: string | undefined;
}

async function measure(server: TestServer, request: GrowthRequest): Promise<Costs> {
  const residentBytes = process.memoryUsage.rss();
  const heapBytes = getHeapStatistics().used_heap_size;
  let peakBytes = heapBytes;
  const sampling = setInterval(() => {
    peakBytes = Math.max(peakBytes, getHeapStatistics().used_heap_size);
  }, heapSampleMs);
  const startMs = processCpuMs();
  const fault = await send(server, request);
  const cpuMs = Math.round(processCpuMs() - startMs);
  clearInterval(sampling);
  peakBytes = Math.max(peakBytes, getHeapStatistics().used_heap_size);
  const memoryMb = Math.round((process.memoryUsage.rss() - residentBytes) / 2 ** 20);
  const heapMb = Math.round((peakBytes - heapBytes) / 2 ** 20);
  return { cpuMs, memoryMb, heapMb, fault };
}

/** Sends a request; returns the bound that its answer violates. */
async function send(server: TestServer, request: GrowthRequest): Promise<string | undefined> {
  const { method, path, type, accept, body, impersonated, chain } = request;
  if (chain !== undefined) {
    const { status, text } = await sendShowing(chain, { url: server.url, method, path });
    return status >= 500 ? `status ${status}: ${text.slice(0, 300)}` : undefined;
  }
  const answer = await server.request(method, path, {
    body,
    ...(type === undefined ? {} : { type }),
    headers: {
      ...(accept === undefined ? {} : { accept }),
      ...(impersonated === true ? { 'impersonate-user': few } : {}),
    },
  });
  return faultOf(answer);
}

/** The bound that an answer violates (TRUST-3). */
function faultOf({ status, text, body, warnings }: Answer): string | undefined {
  if (status >= 500) return `status ${status}: ${text.slice(0, 300)}`;
  if (warnings.length > listedMax + 1) return `${warnings.length} warnings`;
  if (warnings.join('').length > listedBytesMax) return 'warnings of more than 64 KiB';
  if (status < 400) return undefined;
  const causes: unknown =
    isObject(body) && isObject(body['details']) ? body['details']['causes'] : [];
  if (Array.isArray(causes) && causes.length > listedMax) return `${causes.length} causes`;
  return text.length > refusalBytesMax ? `a refusal of ${text.length} bytes` : undefined;
}

/**
 * Groups whose objects affect how others are served; their examples refer to no webhook or server.
 */
const rulesOver = new Set(
  ['admissionregistration', 'apiregistration'].map((stem) => dialect.group(stem)),
);

interface Cases {
  readonly plain: readonly GrowthCase[];
  ofKinds(random: Random): GrowthCase;
}

async function casesOf(server: TestServer): Promise<Cases> {
  const namespace = await freshNamespace(server);
  await prepare(server, namespace);
  const kinds = builtinKinds(dialect).filter(
    (def) => def.example !== undefined && def.verbs.includes('create'),
  );
  // Creates the objects that are patched and replaced. Examples that refer to other objects may be
  // rejected.
  for (const def of kinds) {
    const [version] = def.versions;
    if (version === undefined || def.isVirtual === true || rulesOver.has(def.group)) continue;
    const { path, object } = placeOf(def, version, namespace);
    await server.post(path, object);
  }
  const plain = plainCases.map(({ name, scale = 1, make }) => ({
    name,
    make: (count: number) => make(Math.ceil(count / scale), { namespace }),
  }));
  return {
    plain,
    ofKinds(random) {
      const def = random.pick(kinds);
      const version = random.pick(def.versions);
      const sent = { form: random.pick(forms), answer: random.pick(answers), namespace };
      if (random.chance(textsShare)) {
        const place = random.pick(textsIn(version));
        const unit = random.pick(units);
        // Protobuf cannot represent an invalid time.
        const isTime = place.schema.format?.endsWith('time') === true;
        const form = isTime ? itemAt(forms, 0) : sent.form;
        return textCase({ def, version, place, unit, ...sent, form });
      }
      const first = random.pick(collectionsIn(version));
      const second = random.pick(collectionsIn(version));
      // Two lists at once trigger rules that search one of them for each item of the other.
      const arePair = random.chance(0.5) && !areNested(first, second);
      const collections = arePair ? [first, second] : [first];
      const variant = random.pick(variants);
      return caseOf({ def, version, collections, variant, ...sent });
    },
  };
}

/** Whether one collection is or contains the other; filling one then removes the other. */
function areNested({ steps: left }: Collection, { steps: right }: Collection): boolean {
  const length = Math.min(left.length, right.length);
  return left.slice(0, length).every((step, index) => step === right[index]);
}

const collectionsByVersion = new WeakMap<VersionDef, readonly Collection[]>();

function collectionsIn(version: VersionDef): readonly Collection[] {
  const found = collectionsByVersion.get(version) ?? collectionsOf(version.schema);
  collectionsByVersion.set(version, found);
  return found;
}

const textsByVersion = new WeakMap<VersionDef, readonly Place[]>();

function textsIn(version: VersionDef): readonly Place[] {
  const found = textsByVersion.get(version) ?? textsOf(version.schema);
  textsByVersion.set(version, found);
  return found;
}

/** Creates a user who may only write roles, and an object to patch. */
async function prepare(server: TestServer, namespace: string): Promise<void> {
  const rbac = '/apis/rbac.authorization.svc.io/v1';
  const rule = { apiGroups: ['rbac.authorization.svc.io'], resources: ['roles'], verbs: ['*'] };
  const roleRef = { apiGroup: 'rbac.authorization.svc.io', kind: 'Role', name: 'few' };
  const subjects = [{ kind: 'User', name: few, apiGroup: 'rbac.authorization.svc.io' }];
  const made = [
    await server.post(`${rbac}/namespaces/${namespace}/roles`, {
      metadata: { name: 'few' },
      rules: [rule],
    }),
    await server.post(`${rbac}/namespaces/${namespace}/rolebindings`, {
      metadata: { name: 'few' },
      roleRef,
      subjects,
    }),
    await server.post(`/api/v1/namespaces/${namespace}/configmaps`, {
      metadata: { name: 'seed' },
      data: { k: 'v' },
    }),
    await server.post(definitions, ruledDefinition),
  ];
  for (const { status, text } of made) if (status !== 201) throw new Error(text);
}

/** How a request of a kind is sent and answered, and where. */
interface Sent {
  readonly def: ResourceDef;
  readonly version: VersionDef;
  readonly form: Form;
  readonly answer: AnswerForm;
  readonly namespace: string;
}

function caseOf(
  of: Sent & { readonly collections: readonly Collection[]; readonly variant: Variant },
): GrowthCase {
  const { collections, variant } = of;
  const what = `${variant} ${collections.map(({ steps }) => steps.join('.')).join(' and ')}`;
  return sentCase(of, what, (example, count) =>
    collections.reduce<JsonObject>(
      (sum, collection) => filled(sum, collection, { variant, count }),
      example,
    ),
  );
}

function textCase(of: Sent & { readonly place: Place; readonly unit: string }): GrowthCase {
  const { place, unit } = of;
  const what = `${place.steps.join('.')} of ${JSON.stringify(unit)}`;
  return sentCase(of, what, (example, count) =>
    replaced(example, place.steps, () =>
      unit.repeat(Math.ceil((count * charactersPerItem) / unit.length)),
    ),
  );
}

function sentCase(
  { def, version, form, answer, namespace }: Sent,
  what: string,
  make: (example: JsonObject, count: number) => JsonObject,
): GrowthCase {
  const { path: collectionPath, object: example, name } = placeOf(def, version, namespace);
  const { verb, type } = form;
  const path = verb === 'create' ? collectionPath : `${collectionPath}/${name}`;
  return {
    name: `${form.name} ${collectionPath}, ${what}, answered in ${answer.name}`,
    make(count) {
      const object = make(example, count);
      const query = verb === 'apply' ? '?dryRun=All&fieldManager=growth&force=true' : '?dryRun=All';
      const body = form.encode(object, version);
      const { accept } = answer;
      return { method: methods[verb], path: `${path}${query}`, type, accept, body };
    },
  };
}
