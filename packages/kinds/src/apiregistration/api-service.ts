import {
  appendAll,
  type Dialect,
  dns1035Label,
  dnsSubdomain,
  type FieldError,
  formatTime,
  invalid,
  type NameRule,
  notSupported,
  pathSegment,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, numberAt } from '../cells.ts';
import { defineKind, statusSubresource } from '../define.ts';
import type { APIService, APIServiceSpec } from '../gen/types/apiregistration/v1.ts';
import type { MaybeSteps, ResourceDef, Stored, StrategyContext } from '../resource-def.ts';
import { flatMapSteps } from '../rules/checks.ts';
import { fill, keepMembers } from '../rules/fill.ts';

/** APIService: assigns a group version to this server or to an aggregated one. */
export function apiService(dialect: Dialect): ResourceDef {
  return defineKind<APIService>({
    dialect,
    facts: 'apiregistration',
    kind: 'APIService',
    scope: 'Cluster',
    categories: ['api-extensions'],
    versions: [
      {
        version: 'v1',
        defaults: (object) => fill(object.spec?.service, { port: 443 }),
        columns: [
          nameColumn,
          column('Service', serviceCell, {
            description: 'Service that serves the API; Local for this server.',
          }),
          column('Available', availableCell, { description: 'Whether the API is available.' }),
          ageColumn,
        ],
      },
    ],
    storage: { prefix: `/registry/${dialect.group('apiregistration')}/apiservices/` },
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: pathSegment,
      hasStatus: true,
      allowUnconditionalUpdate: false,
      prepareForCreate,
      prepareForUpdate,
      nameRules: (object) => ({ validateName: nameRule(object), validatePrefix: nameRule(object) }),
      validateCreate: (_, object) => validateSpec(object),
      validateUpdate: (context, object) =>
        context.subresource === 'status'
          ? validateStatus(object)
          : [...validateNames(object), ...validateSpec(object)],
      resetFields: { '': ['status'], status: ['spec', 'metadata'] },
    },
    subresources: [statusSubresource],
    example: () => ({
      metadata: { name: 'v1.metrics.example.com' },
      spec: {
        group: 'metrics.example.com',
        version: 'v1',
        groupPriorityMinimum: 100,
        versionPriority: 10,
        service: { namespace: 'default', name: 'metrics' },
      },
    }),
  });
}

function serviceCell(object: Stored<APIService>): string {
  const service = object.spec?.service;
  if (service === undefined) return 'Local';
  return `${service.namespace ?? ''}/${service.name ?? ''}`;
}

/** Type of the condition that reports whether the group version's server is available. */
export const availableCondition = 'Available';

function availableCell(object: Stored<APIService>): string {
  const condition = (object.status?.conditions ?? []).find(
    ({ type }) => (type ?? '') === availableCondition,
  );
  if (condition === undefined) return 'Unknown';
  const [status, reason] = [condition.status ?? '', condition.reason ?? ''];
  return status === 'True' || reason === '' ? status : `${status} (${reason})`;
}

/** The content of the `Available` condition of a group version that this server serves. */
export const localAvailability = {
  status: 'True',
  reason: 'Local',
  message: 'Local APIServices are always available',
} as const;

/** A local group version is available at once; a controller checks the others. */
function prepareForCreate(context: StrategyContext, object: Stored<APIService>): void {
  if (object.spec?.service !== undefined) return;
  const lastTransitionTime = formatTime(context.nowMs);
  const condition = { type: availableCondition, lastTransitionTime, ...localAvailability };
  object.status = { conditions: [condition] };
}

/** A write to status changes no metadata except managed fields. */
function prepareForUpdate(
  context: StrategyContext,
  object: Stored<APIService>,
  old: Stored<APIService>,
): MaybeSteps<void> {
  if (context.subresource !== 'status') return;
  const kept = ['labels', 'annotations', 'finalizers', 'ownerReferences'];
  return keepMembers(object.metadata, old.metadata, kept);
}

/** The rule for the name, and the prefix of a generated one: it states the group version. */
function nameRule({ spec }: Stored<APIService>): NameRule {
  const expected = `${spec?.version ?? ''}.${spec?.group ?? ''}`;
  const detail = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(expected)}`;
  return (name) => {
    const problems = pathSegment(name);
    return problems.length > 0 || name === expected ? problems : [detail];
  };
}

/** Validates the names of a changed object, whose group version may differ from the old one's. */
function validateNames(object: Stored<APIService>): FieldError[] {
  const rule = nameRule(object);
  return (['generateName', 'name'] as const).flatMap((member) => {
    const name = object.metadata[member] ?? '';
    const isSkipped = name === '' || pathSegment(name).length > 0;
    return isSkipped ? [] : ruleErrors(`metadata.${member}`, name, rule);
  });
}

const groupPriorityMax = 20_000;
const versionPriorityMax = 1000;

function validateSpec(object: Stored<APIService>): FieldError[] {
  const spec = object.spec ?? {};
  const [group, version] = [spec.group ?? '', spec.version ?? ''];
  const errors: FieldError[] = [];
  if (group === '' && version !== 'v1') {
    const detail = 'only v1 may have an empty group and it better be legacy kube';
    errors.push(required('spec.group', detail));
  }
  const wrongGroup = group === '' ? [] : dnsSubdomain(group);
  appendAll(
    errors,
    wrongGroup.map((text) => invalid('spec.group', group, text)),
  );
  appendAll(
    errors,
    dns1035Label(version).map((text) => invalid('spec.version', version, text)),
  );
  const within = (name: string, max: number) => {
    const value = numberAt(spec, name);
    if (value > 0 && value <= max) return;
    errors.push(invalid(`spec.${name}`, value, `must be positive and less than ${max}`));
  };
  within('groupPriorityMinimum', groupPriorityMax);
  within('versionPriority', versionPriorityMax);
  return [...errors, ...validateService(spec)];
}

function validateService(spec: Stored<APIServiceSpec>): FieldError[] {
  const service = spec.service;
  const bundle = spec.caBundle ?? '';
  const isInsecure = spec.insecureSkipTLSVerify === true;
  const errors: FieldError[] = [];
  if (service === undefined) {
    if (bundle !== '') {
      const size = `${Buffer.from(bundle, 'base64').length} bytes`;
      errors.push(invalid('spec.caBundle', size, 'local APIServices may not have a caBundle'));
    }
    if (isInsecure) {
      const detail = 'local APIServices may not have insecureSkipTLSVerify';
      errors.push(invalid('spec.insecureSkipTLSVerify', true, detail));
    }
    return errors;
  }
  for (const name of ['namespace', 'name'] as const) {
    if ((service[name] ?? '') === '') errors.push(required(`spec.service.${name}`));
  }
  const port = service.port ?? 0;
  if (port < 1 || port > 65_535) {
    const detail = 'port is not valid: must be between 1 and 65535, inclusive';
    errors.push(invalid('spec.service.port', port, detail));
  }
  if (isInsecure && bundle !== '') {
    const detail = 'may not be true if caBundle is present';
    errors.push(invalid('spec.insecureSkipTLSVerify', true, detail));
  }
  return errors;
}

const conditionStatuses = ['True', 'False', 'Unknown'];

function validateStatus(object: Stored<APIService>): Generator<void, FieldError[]> {
  return flatMapSteps(object.status?.conditions ?? [], (condition, index) => {
    const status = condition.status ?? '';
    if (conditionStatuses.includes(status)) return [];
    return [notSupported(`status.conditions[${index}].status`, status, conditionStatuses)];
  });
}
