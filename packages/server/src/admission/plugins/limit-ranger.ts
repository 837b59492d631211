import {
  type Amounts,
  amountsOf,
  amountsOfSteps,
  ensure,
  objectAt,
  objectsAt,
  podAmountsSteps,
  type Stored,
  textAt,
} from '@wheelhouse/kinds';
import type {
  Container,
  LimitRange,
  PersistentVolumeClaim,
  Pod,
  PodSpec,
} from '@wheelhouse/kinds/types/core/v1';
import {
  type ApiObject,
  aggregateText,
  compareText,
  type JsonObject,
  type Quantity,
  runInSlices,
  sortSteps,
  WorkBudget,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { type AdmissionTools, refusal } from '../tools.ts';

/**
 * Applies the LimitRanges of a namespace to new pods and volume claims (ADM-1): sets default
 * requests and limits, and rejects values out of range.
 */
export function limitRanger(tools: AdmissionTools): AdmissionPlugin {
  const annotation = tools.dialect.label('limit-ranger');
  const ranges = ({ target }: AdmissionCall) => tools.objects.list('limitranges', target.namespace);
  return {
    name: 'LimitRanger',
    async mutate(call) {
      const object = limited(call);
      if (object === undefined || call.target.def.resource !== 'pods') return;
      const work = setDefaults(object, { ranges: await ranges(call), annotation });
      await runInSlices(work, tools.clock);
    },
    async validate(call) {
      const object = limited(call);
      if (object === undefined) return;
      const isPod = call.target.def.resource === 'pods';
      const problemsIn = isPod ? podProblems(object) : claimProblems(object);
      for (const range of await ranges(call)) {
        const problems = await runInSlices(problemsIn(range), tools.clock);
        if (problems.length > 0) throw refusal(call, aggregateText(problems));
      }
    },
  };
}

/**
 * Only a resize changes the resources of existing containers; other updates, and deleted objects,
 * are exempt.
 */
function limited({ target, operation, object, old }: AdmissionCall): ApiObject | undefined {
  const isPod = target.def.resource === 'pods';
  const isResize = isPod && target.subresource === 'resize';
  if (!isResize && target.subresource !== '') return undefined;
  if (operation === 'DELETE' || (isPod && operation === 'UPDATE' && !isResize)) return undefined;
  return old?.metadata.deletionTimestamp === undefined ? object : undefined;
}

const limitsOf = (range: Stored<LimitRange>) => range.spec?.limits ?? [];

/** Maximum comparisons of a container's resource with a limit or default per request. */
const limitStepsMax = 200_000;

const limitBudget = () => new WorkBudget({ what: 'the check of limits', steps: limitStepsMax });

/** Sets the defaults of each range in turn, in steps, with one budget for all. */
function* setDefaults(
  pod: Stored<Pod>,
  { ranges, annotation }: { ranges: readonly ApiObject[]; annotation: string },
): Generator<void, void> {
  const budget = limitBudget();
  for (const range of ranges) {
    const changes = yield* setDefaultsOf(range, pod, budget);
    if (changes.length === 0) continue;
    const annotations = pod.metadata.annotations ?? {};
    pod.metadata.annotations = {
      ...annotations,
      [annotation]: `LimitRanger plugin set: ${changes.join('; ')}`,
    };
  }
}

/** @returns what it set, in words */
function* setDefaultsOf(
  range: ApiObject,
  pod: Stored<Pod>,
  budget: WorkBudget,
): Generator<void, readonly string[]> {
  const requests: JsonObject = {};
  const limits: JsonObject = {};
  for (const limit of limitsOf(range)) {
    if ((limit.type ?? '') !== 'Container') continue;
    Object.assign(requests, limit.defaultRequest);
    Object.assign(limits, limit.default);
  }
  const changes: string[] = [];
  const defaultCount = Object.keys(requests).length + Object.keys(limits).length;
  const kinds = [
    ['containers', 'container'],
    ['initContainers', 'init container'],
  ] as const;
  for (const [member, word] of kinds) {
    for (const container of objectsAt(pod, 'spec', member)) {
      yield;
      budget.spend(defaultCount);
      const subject = `${word} ${textAt(container, 'name')}`;
      for (const [field, defaults, noun] of [
        ['requests', requests, 'request'],
        ['limits', limits, 'limit'],
      ] as const) {
        const names = yield* fillMissing(container, field, defaults);
        if (names.length > 0) changes.push(`${names.join(', ')} ${noun} for ${subject}`);
      }
    }
  }
  return changes;
}

/** Limits or defaults that one step applies, in less than a millisecond. */
const boundsPerStep = 500;

/** Sets missing values, in steps; returns their names, sorted. */
function* fillMissing(
  container: Stored<Container>,
  member: 'requests' | 'limits',
  defaults: JsonObject,
): Generator<void, readonly string[]> {
  const present = container.resources?.[member] ?? {};
  const filled: Record<string, string> = { ...present };
  const names: string[] = [];
  for (const [index, name] of Object.keys(defaults).entries()) {
    if (index % boundsPerStep === boundsPerStep - 1) yield;
    if (Object.hasOwn(present, name)) continue;
    names.push(name);
    filled[name] = textAt(defaults, name);
  }
  if (names.length === 0) return names;
  ensure(container, 'resources')[member] = filled;
  return yield* sortSteps(names, compareText);
}

interface Asked {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

/** The limits of one type in a LimitRange, read once. */
interface Bounds {
  readonly type: string;
  readonly min: BoundList;
  readonly max: BoundList;
  readonly ratio: BoundList;
}

/** In order of names; kube-apiserver has no order. */
type BoundList = readonly (readonly [name: string, bound: Quantity])[];

/** The bounds of each LimitRange: admission reads the same objects until they change. */
const boundsOfRanges = new WeakMap<ApiObject, readonly Bounds[]>();

/** The bounds of a LimitRange, in steps. */
function* boundsOf(range: ApiObject): Generator<void, readonly Bounds[]> {
  const cached = boundsOfRanges.get(range);
  if (cached !== undefined) return cached;
  const bounds: Bounds[] = [];
  for (const limit of limitsOf(range)) {
    yield;
    bounds.push({
      type: limit.type ?? '',
      min: yield* boundList(limit, 'min'),
      max: yield* boundList(limit, 'max'),
      ratio: yield* boundList(limit, 'maxLimitRequestRatio'),
    });
  }
  boundsOfRanges.set(range, bounds);
  return bounds;
}

function* boundList(limit: JsonObject, member: string): Generator<void, BoundList> {
  const amounts = yield* amountsOfSteps(objectAt(limit, member));
  return yield* sortSteps([...amounts], ([left], [right]) => (left < right ? -1 : 1));
}

type ProblemsIn = (range: ApiObject) => Generator<void, readonly string[]>;

/** Finds the problems of a pod with one range after the other, in steps, with one budget. */
function podProblems({ spec }: Stored<Pod>): ProblemsIn {
  const budget = limitBudget();
  let containers: readonly Asked[] | undefined;
  let whole: readonly Asked[] | undefined;
  function* subjectsOf(type: string): Generator<void, readonly Asked[]> {
    if (type === 'Container') {
      containers ??= yield* askedByEach(spec);
      return containers;
    }
    if (type !== 'Pod') return [];
    whole ??= [
      {
        requests: yield* podAmountsSteps(spec, 'requests'),
        limits: yield* podAmountsSteps(spec, 'limits'),
      },
    ];
    return whole;
  }
  return function* (range) {
    const problems: string[] = [];
    for (const bounds of yield* boundsOf(range)) {
      const { type, min, max, ratio } = bounds;
      for (const subject of yield* subjectsOf(type)) {
        yield;
        budget.spend(min.length + max.length + ratio.length);
        yield* addLimitProblems(problems, bounds, subject);
      }
      yield;
    }
    return problems;
  };
}

function* askedByEach(spec: Stored<PodSpec> | undefined): Generator<void, readonly Asked[]> {
  const amounts: Asked[] = [];
  for (const container of [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])]) {
    yield;
    const amountsIn = (member: string) => amountsOfSteps(objectAt(container, 'resources', member));
    amounts.push({ requests: yield* amountsIn('requests'), limits: yield* amountsIn('limits') });
  }
  return amounts;
}

/** Maximum number of problems, which exceed the length of a message. */
const problemsMax = 2_000;

type Rule = (compared: Compared, bound: Quantity) => string | undefined;

/** Adds the problems of a container or pod with limits, in steps. */
function* addLimitProblems(
  problems: string[],
  { type, min, max, ratio }: Bounds,
  amounts: Asked,
): Generator<void, void> {
  const { requests, limits } = amounts;
  yield* addProblems(problems, { type, bounds: min, requests, limits, rule: tooLittle });
  yield* addProblems(problems, { type, bounds: max, requests, limits, rule: tooMuch });
  yield* addProblems(problems, { type, bounds: ratio, requests, limits, rule: tooWide });
}

function* addProblems(
  problems: string[],
  of: Asked & { readonly type: string; readonly bounds: BoundList; readonly rule: Rule },
): Generator<void, void> {
  const { type, bounds, requests, limits, rule } = of;
  for (const [index, [name, bound]] of bounds.entries()) {
    if (problems.length >= problemsMax) return;
    if (index % boundsPerStep === boundsPerStep - 1) yield;
    const compared = { type, name, request: requests.get(name), limit: limits.get(name) };
    const problem = rule(compared, bound);
    if (problem !== undefined) problems.push(problem);
  }
}

function claimProblems(claim: Stored<PersistentVolumeClaim>): ProblemsIn {
  const requests = amountsOf(claim.spec?.resources?.requests);
  const limits: Amounts = new Map();
  return function* (range) {
    const problems: string[] = [];
    for (const { type, min, max } of yield* boundsOf(range)) {
      yield;
      if (type !== 'PersistentVolumeClaim') continue;
      yield* addProblems(problems, { type, bounds: min, requests, limits, rule: tooLittle });
      yield* addProblems(problems, { type, bounds: max, requests, limits, rule: tooMuchRequested });
    }
    return problems;
  };
}

interface Compared {
  readonly type: string;
  readonly name: string;
  readonly request: Quantity | undefined;
  readonly limit: Quantity | undefined;
}

function tooLittle({ type, name, request, limit }: Compared, bound: Quantity): string | undefined {
  const rule = `minimum ${name} usage per ${type} is ${bound.text}`;
  if (request === undefined) return `${rule}.  No request is specified`;
  if (request.nano < bound.nano) return `${rule}, but request is ${request.text}`;
  return limit !== undefined && limit.nano < bound.nano
    ? `${rule}, but limit is ${limit.text}`
    : undefined;
}

function tooMuch({ type, name, request, limit }: Compared, bound: Quantity): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${bound.text}`;
  if (limit === undefined) return `${rule}.  No limit is specified`;
  if (limit.nano > bound.nano) return `${rule}, but limit is ${limit.text}`;
  return request !== undefined && request.nano > bound.nano
    ? `${rule}, but request is ${request.text}`
    : undefined;
}

function tooMuchRequested({ type, name, request }: Compared, bound: Quantity): string | undefined {
  const rule = `maximum ${name} usage per ${type} is ${bound.text}`;
  if (request === undefined) return `${rule}.  No request is specified`;
  return request.nano > bound.nano ? `${rule}, but request is ${request.text}` : undefined;
}

function tooWide({ type, name, request, limit }: Compared, bound: Quantity): string | undefined {
  const rule = `${name} max limit to request ratio per ${type} is ${bound.text}`;
  if (request === undefined || request.nano === 0n) {
    return `${rule}, but no request is specified or request is 0`;
  }
  if (limit === undefined || limit.nano === 0n) {
    return `${rule}, but no limit is specified or limit is 0`;
  }
  const ratio = milliOf(limit) / milliOf(request);
  if (ratio * 1000 <= milliOf(bound)) return undefined;
  return `${rule}, but provided ratio is ${ratio.toFixed(6)}`;
}

/** Thousandths, since billionths of large amounts exceed the precision of a number. */
const milliOf = ({ nano }: Quantity): number => Number(nano / 1_000_000n);
