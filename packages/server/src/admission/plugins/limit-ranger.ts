import {
  type Amounts,
  amountsOf,
  ensure,
  objectAt,
  objectsAt,
  podAmounts,
  type Stored,
  textAt,
} from '@wheelhouse/kinds';
import type {
  Container,
  LimitRange,
  LimitRangeItem,
  PersistentVolumeClaim,
  Pod,
} from '@wheelhouse/kinds/types/core/v1';
import {
  type ApiObject,
  aggregateText,
  type JsonObject,
  type Quantity,
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
      for (const range of await ranges(call)) setDefaults(object, { range, annotation });
    },
    async validate(call) {
      const object = limited(call);
      if (object === undefined) return;
      for (const range of await ranges(call)) {
        const problems =
          call.target.def.resource === 'pods'
            ? podProblems(object, range)
            : claimProblems(object, range);
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

const countAt = (limit: Stored<LimitRangeItem>, ...members: readonly string[]) =>
  members.reduce((sum, member) => sum + Object.keys(objectAt(limit, member) ?? {}).length, 0);

function setDefaults(
  pod: Stored<Pod>,
  { range, annotation }: { range: ApiObject; annotation: string },
): void {
  const requests: JsonObject = {};
  const limits: JsonObject = {};
  for (const limit of limitsOf(range)) {
    if ((limit.type ?? '') !== 'Container') continue;
    Object.assign(requests, limit.defaultRequest);
    Object.assign(limits, limit.default);
  }
  const changes: string[] = [];
  const budget = limitBudget();
  const defaultCount = Object.keys(requests).length + Object.keys(limits).length;
  const kinds = [
    ['containers', 'container'],
    ['initContainers', 'init container'],
  ] as const;
  for (const [member, word] of kinds) {
    for (const container of objectsAt(pod, 'spec', member)) {
      budget.spend(defaultCount);
      const subject = `${word} ${textAt(container, 'name')}`;
      const fill = (field: 'requests' | 'limits', defaults: JsonObject, noun: string) => {
        const names = fillMissing(container, field, defaults);
        if (names.length > 0) changes.push(`${names.join(', ')} ${noun} for ${subject}`);
      };
      fill('requests', requests, 'request');
      fill('limits', limits, 'limit');
    }
  }
  if (changes.length === 0) return;
  const annotations = pod.metadata.annotations ?? {};
  pod.metadata.annotations = {
    ...annotations,
    [annotation]: `LimitRanger plugin set: ${changes.join('; ')}`,
  };
}

/** Sets missing values; returns their names, sorted. */
function fillMissing(
  container: Stored<Container>,
  member: 'requests' | 'limits',
  defaults: JsonObject,
): readonly string[] {
  const present = container.resources?.[member] ?? {};
  const names = Object.keys(defaults).filter((name) => !Object.hasOwn(present, name));
  if (names.length === 0) return [];
  const added = Object.fromEntries(names.map((name) => [name, textAt(defaults, name)]));
  ensure(container, 'resources')[member] = { ...present, ...added };
  return names.sort();
}

interface Asked {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

function podProblems(pod: Stored<Pod>, range: ApiObject): readonly string[] {
  const spec = pod.spec;
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  const budget = limitBudget();
  return limitsOf(range).flatMap((limit) => {
    switch (limit.type ?? '') {
      case 'Container':
        budget.spend(containers.length * countAt(limit, 'min', 'max', 'maxLimitRequestRatio'));
        return containers.flatMap((container) => limitProblems(limit, askedBy(container)));
      case 'Pod': {
        const requests = podAmounts(spec, 'requests');
        return limitProblems(limit, { requests, limits: podAmounts(spec, 'limits') });
      }
      default:
        return [];
    }
  });
}

function askedBy(container: Stored<Container>): Asked {
  const amountsIn = (member: string) => amountsOf(objectAt(container, 'resources', member));
  return { requests: amountsIn('requests'), limits: amountsIn('limits') };
}

/** The problems with the bounds of a member, in order of names; kube-apiserver has no order. */
function boundProblems(
  limit: Stored<LimitRangeItem>,
  member: string,
  problem: (name: string, bound: Quantity) => string | undefined,
): string[] {
  return [...amountsOf(objectAt(limit, member))]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .flatMap(([name, bound]) => problem(name, bound) ?? []);
}

function limitProblems(limit: Stored<LimitRangeItem>, amounts: Asked): readonly string[] {
  const type = limit.type ?? '';
  const at = (name: string) => ({
    type,
    name,
    request: amounts.requests.get(name),
    limit: amounts.limits.get(name),
  });
  return [
    ...boundProblems(limit, 'min', (name, bound) => tooLittle(at(name), bound)),
    ...boundProblems(limit, 'max', (name, bound) => tooMuch(at(name), bound)),
    ...boundProblems(limit, 'maxLimitRequestRatio', (name, bound) => tooWide(at(name), bound)),
  ];
}

function claimProblems(claim: Stored<PersistentVolumeClaim>, range: ApiObject): readonly string[] {
  const requests = amountsOf(claim.spec?.resources?.requests);
  return limitsOf(range).flatMap((limit) => {
    const type = limit.type ?? '';
    if (type !== 'PersistentVolumeClaim') return [];
    const at = (name: string) => ({ type, name, request: requests.get(name), limit: undefined });
    return [
      ...boundProblems(limit, 'min', (name, bound) => tooLittle(at(name), bound)),
      ...boundProblems(limit, 'max', (name, bound) => tooMuchRequested(at(name), bound)),
    ];
  });
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
