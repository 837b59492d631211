import {
  compareText,
  hostInUrl,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@wheelhouse/machinery';
import { amountRoundedUp, listAt, objectAt, textAt } from '../objects.ts';
import { selectorText } from '../rollout/workloads.ts';
import { withoutControls } from '../terminal.ts';
import { annotationLines, labelLines } from './metadata.ts';
import { headLines, valueLines, valuePairs } from './tabs.ts';
import { volumeBlock } from './volumes.ts';

/** Describes a Pod template in kubectl's format, with spaces and tabs, without other controls. */
export const podTemplateText = (template: JsonObject): string =>
  podTemplateLines(template)
    .map((line) => `${withoutControls(line)}\n`)
    .join('');

/** The lines of a Pod template's description, with tabs between columns. */
export function podTemplateLines(template: JsonObject): string[] {
  const spec = objectAt(template, 'spec');
  const annotations = objectAt(template, 'metadata', 'annotations');
  const account = textAt(spec, 'serviceAccountName');
  const priority = textAt(spec, 'priorityClassName');
  const initial = listAt(spec, 'initContainers');
  return [
    'Pod Template:',
    ...labelLines(template, '  Labels'),
    ...(Object.keys(annotations).length === 0 ? [] : annotationLines(template, '  Annotations')),
    ...(account === '' ? [] : [`  Service Account:\t${account}`]),
    ...(initial.length === 0 ? [] : containerBlock('Init Containers', initial, { indent: '  ' })),
    ...containerBlock('Containers', listAt(spec, 'containers'), { indent: '  ' }),
    ...volumeBlock(listAt(spec, 'volumes'), '  '),
    ...spreadLines(spec, '  '),
    ...(priority === '' ? [] : [`  Priority Class Name:\t${priority}`]),
    ...valuePairs('  Node-Selectors', objectAt(spec, 'nodeSelector')),
    ...tolerationLines('  Tolerations', spec),
  ];
}

/** Describes the tolerations of a Pod specification. */
export const tolerationLines = (title: string, spec: JsonObject): string[] =>
  valueLines(
    title,
    listAt(spec, 'tolerations')
      .toSorted((left, right) => compareText(textAt(left, 'key'), textAt(right, 'key')))
      .map(tolerationText),
  );

/** Describes the topology spread constraints of a Pod specification, if any. */
export function spreadLines(spec: JsonObject, indent: '' | '  '): string[] {
  const constraints = listAt(spec, 'topologySpreadConstraints')
    .toSorted((left, right) =>
      compareText(textAt(left, 'topologyKey'), textAt(right, 'topologyKey')),
    )
    .map((constraint) => {
      const { labelSelector, maxSkew } = constraint;
      const selector = isObject(labelSelector)
        ? ` for selector ${selectorText(labelSelector) || '<none>'}`
        : '';
      const rule = `${textAt(constraint, 'topologyKey')}:${textAt(constraint, 'whenUnsatisfiable')}`;
      return `${rule} when max skew ${String(maxSkew)} is exceeded${selector}`;
    });
  if (constraints.length === 0) return [];
  return valueLines(`${indent}Topology Spread Constraints`, constraints);
}

/** Where containers are described: in a template, or in a Pod that may run them. */
interface ContainerContext {
  /** Two spaces in a template, none in a Pod. */
  readonly indent: '' | '  ';
  readonly pod?: JsonObject;
  /** The statuses of the containers in the Pod. */
  readonly statuses?: readonly JsonObject[];
}

/** Describes containers below a title. */
export function containerBlock(
  title: string,
  list: readonly JsonObject[],
  context: ContainerContext,
): string[] {
  const { indent, pod, statuses = [] } = context;
  return [
    `${indent}${title}:${list.length === 0 ? ' <none>' : ''}`,
    ...list.flatMap((container) => {
      const name = textAt(container, 'name');
      const status = statuses.find((candidate) => textAt(candidate, 'name') === name);
      const nameIndent = indent === '' ? '  ' : '   ';
      return [`${nameIndent}${name}:`, ...containerLines(container, { pod, status })];
    }),
  ];
}

function containerLines(
  container: JsonObject,
  {
    pod,
    status,
  }: { readonly pod: JsonObject | undefined; readonly status: JsonObject | undefined },
): string[] {
  const probe = (title: string, name: string) =>
    isObject(container[name]) ? [`${title}:\t${probeText(objectAt(container, name))}`] : [];
  const lines = [
    ...(status === undefined ? [] : [`Container ID:\t${textAt(status, 'containerID')}`]),
    `Image:\t${textAt(container, 'image')}`,
    ...(status === undefined ? [] : [`Image ID:\t${textAt(status, 'imageID')}`]),
    ...portLines(container, 'Port', 'containerPort'),
    ...portLines(container, 'Host Port', 'hostPort'),
    ...seccompLines(container, '  '),
    ...wordLines(container, 'Command'),
    ...wordLines(container, 'Args'),
    ...(status === undefined ? [] : statusLines(status)),
    ...resourceLines(objectAt(container, 'resources')),
    ...probe('Liveness', 'livenessProbe'),
    ...probe('Readiness', 'readinessProbe'),
    ...probe('Startup', 'startupProbe'),
    ...environment(container, pod),
    ...mounts(container),
    ...devices(container),
  ];
  return lines.map((line) => `    ${line}`);
}

/** Describes the limits and requests of a container or of a whole Pod. */
export const resourceLines = (resources: JsonObject): string[] =>
  ['Limits', 'Requests'].flatMap((title) =>
    amountLines(title, objectAt(resources, title.toLowerCase())),
  );

/** Describes a resource list below a title; empty if it has no resources. */
export function amountLines(title: string, amounts: JsonObject): string[] {
  const names = Object.keys(amounts).sort();
  if (names.length === 0) return [];
  return [`${title}:`, ...names.map((name) => `  ${name}:\t${String(amounts[name])}`)];
}

/** Describes the seccomp profile of a Pod, or of a container with an indented file, if any. */
export function seccompLines(securable: JsonObject, indent: '' | '  '): string[] {
  const profile = objectAt(securable, 'securityContext', 'seccompProfile');
  const type = textAt(profile, 'type');
  if (type === '') return [];
  const file = textAt(profile, 'localhostProfile');
  return [
    `SeccompProfile:\t${type}`,
    ...(file === '' ? [] : [`${indent}LocalhostProfile:\t${file}`]),
  ];
}

function statusLines(status: JsonObject): string[] {
  const { lastState } = status;
  const ended = isObject(lastState) && isObject(lastState['terminated']);
  return [
    ...stateLines('State', objectAt(status, 'state')),
    ...(ended ? stateLines('Last State', objectAt(status, 'lastState')) : []),
    `Ready:\t${status['ready'] === true ? 'True' : 'False'}`,
    `Restart Count:\t${String(status['restartCount'] ?? 0)}`,
  ];
}

function stateLines(title: string, state: JsonObject): string[] {
  const optional = (name: string, part: JsonObject) => {
    const text = textAt(part, name.toLowerCase());
    return text === '' ? [] : [`  ${name}:\t${text}`];
  };
  const { running, terminated } = state;
  if (isObject(running)) {
    return [`${title}:\tRunning`, `  Started:\t${longTime(textAt(running, 'startedAt'))}`];
  }
  if (!isObject(terminated)) {
    return [`${title}:\tWaiting`, ...optional('Reason', objectAt(state, 'waiting'))];
  }
  const { signal, exitCode } = terminated;
  return [
    `${title}:\tTerminated`,
    ...optional('Reason', terminated),
    ...optional('Message', terminated),
    `  Exit Code:\t${String(exitCode ?? 0)}`,
    ...(Number(signal ?? 0) > 0 ? [`  Signal:\t${String(signal)}`] : []),
    `  Started:\t${longTime(textAt(terminated, 'startedAt'))}`,
    `  Finished:\t${longTime(textAt(terminated, 'finishedAt'))}`,
  ];
}

const twoDigits = (value: number): string => String(value).padStart(2, '0');

/** A time in the local time zone: as if it were in UTC, and the zone's offset (`+0100`). */
function localTime(text: string) {
  const time = new Date(text === '' ? '0001-01-01T00:00:00Z' : text);
  const offset = -time.getTimezoneOffset();
  const minutes = Math.abs(offset);
  const zone = `${twoDigits(Math.floor(minutes / 60))}${twoDigits(minutes % 60)}`;
  return {
    time,
    shifted: new Date(time.getTime() + offset * 60_000),
    offset: `${offset < 0 ? '-' : '+'}${zone}`,
  };
}

/** Formats an RFC 3339 time as `Mon, 02 Jan 2006 15:04:05 +0100`, in the local time zone. */
export function longTime(text: string): string {
  const { shifted, offset } = localTime(text);
  return `${shifted.toUTCString().replace(/ GMT$/, '')} ${offset}`;
}

/** Locales that together know the abbreviations of most time zones. */
const zoneLocales = ['en-US', 'en-GB', 'en-AU', 'en-NZ', 'en-IN', 'en-ZA'];

/**
 * Formats an RFC 3339 time as `2006-01-02 15:04:05 +0100 CET`, in the local time zone. The hours of
 * the offset replace an unknown abbreviation, as in Go.
 */
export function zonedTime(text: string): string {
  const { time, shifted, offset } = localTime(text);
  const names = zoneLocales.map((locale) => {
    const format = new Intl.DateTimeFormat(locale, { timeZoneName: 'short' });
    const parts = format.formatToParts(time);
    return parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
  });
  const name = names.find((candidate) => /^[A-Z]+$/.test(candidate));
  const local = shifted
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, '');
  return `${local} ${offset} ${name ?? offset.replace(/00$/, '')}`;
}

/** A table of conditions with the times of their last transitions; empty if there are none. */
export function conditionTable(conditions: readonly JsonObject[]): string[] {
  if (conditions.length === 0) return [];
  const heads = ['Type', 'Status', 'LastTransitionTime', 'Reason', 'Message'];
  const rows = conditions.map((condition) => {
    const text = (name: string) => textAt(condition, name);
    const time = longTime(text('lastTransitionTime'));
    return `  ${text('type')}\t${text('status')}\t${time}\t${text('reason')}\t${text('message')}`;
  });
  return ['Conditions:', ...headLines(heads, '  '), ...rows];
}

/**
 * The rows of a table of conditions with two times.
 * @param checkedTime the member with the time of the last check, which precedes the transition's
 */
export const conditionRows = (conditions: readonly JsonObject[], checkedTime: string): string[] =>
  conditions.map((condition) => {
    const text = (name: string) => textAt(condition, name);
    const [checked, transition] = [checkedTime, 'lastTransitionTime'].map((name) =>
      longTime(text(name)),
    );
    return (
      `  ${text('type')} \t${text('status')} \t${checked} \t${transition} \t` +
      `${text('reason')} \t${text('message')}`
    );
  });

function portLines(container: JsonObject, title: string, name: string): string[] {
  const ports = listAt(container, 'ports').map(
    (port) => `${String(port[name] ?? 0)}/${textAt(port, 'protocol') || 'TCP'}`,
  );
  if (ports.length > 1) return [`${title}s:\t${ports.join(', ')}`];
  return [`${title}:\t${ports[0] ?? '<none>'}`];
}

function wordLines(container: JsonObject, title: string): string[] {
  const list = container[title.toLowerCase()];
  if (!Array.isArray(list) || list.length === 0) return [];
  return [
    `${title}:`,
    ...list.flatMap((word) => String(word).split('\n')).map((line) => `  ${line}`),
  ];
}

function probeText(probe: JsonObject): string {
  const { exec, httpGet, tcpSocket, grpc } = probe;
  const number = (name: string) => String(probe[name] ?? 0);
  const times =
    `delay=${number('initialDelaySeconds')}s timeout=${number('timeoutSeconds')}s ` +
    `period=${number('periodSeconds')}s #success=${number('successThreshold')} ` +
    `#failure=${number('failureThreshold')}`;
  const target = (part: JsonObject) => `${textAt(part, 'host')}:${String(part['port'] ?? '')}`;
  if (isObject(exec)) {
    const command = Array.isArray(exec['command']) ? exec['command'] : [];
    return `exec [${command.map(String).join(' ')}] ${times}`;
  }
  if (isObject(httpGet)) return `http-get ${urlText(httpGet)} ${times}`;
  if (isObject(tcpSocket)) return `tcp-socket ${target(tcpSocket)} ${times}`;
  if (isObject(grpc))
    return `grpc <pod>:${String(grpc['port'])} ${textAt(grpc, 'service')} ${times}`;
  return `unknown ${times}`;
}

/** The URL of a probe, with Go's escapes in the path. */
function urlText(probe: JsonObject): string {
  const host = textAt(probe, 'host');
  const port = `${hostInUrl(host)}:${String(probe['port'] ?? '')}`;
  const path = encodeURI(Buffer.from(textAt(probe, 'path')).toString()).replace(
    /[?#!*'()]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  const slash = path === '' || path.startsWith('/') ? '' : '/';
  return `${textAt(probe, 'scheme').toLowerCase()}://${port}${slash}${path}`;
}

function environment(container: JsonObject, pod: JsonObject | undefined): string[] {
  const from = listAt(container, 'envFrom').map((source) => {
    const kind = isObject(source['configMapRef']) ? 'ConfigMap' : 'Secret';
    const ref = objectAt(source, kind === 'ConfigMap' ? 'configMapRef' : 'secretRef');
    const prefix = textAt(source, 'prefix');
    const note = prefix === '' ? '' : ` with prefix '${prefix}'`;
    return `  ${textAt(ref, 'name')}\t${kind}${note}\tOptional: ${ref['optional'] === true}`;
  });
  const variables = listAt(container, 'env').map(
    (variable) => `  ${textAt(variable, 'name')}:\t${envValue(variable, { container, pod })}`,
  );
  return [
    ...(from.length === 0 ? [] : ['Environment Variables from:', ...from]),
    `Environment:${variables.length === 0 ? '\t<none>' : ''}`,
    ...variables,
  ];
}

function envValue(
  variable: JsonObject,
  { container, pod }: { readonly container: JsonObject; readonly pod: JsonObject | undefined },
): string {
  const from = objectAt(variable, 'valueFrom');
  const { fieldRef, resourceFieldRef, secretKeyRef, configMapKeyRef } = from;
  if (isObject(fieldRef)) {
    const path = textAt(fieldRef, 'fieldPath');
    return `${fieldText(pod, path)} (${textAt(fieldRef, 'apiVersion')}:${path})`;
  }
  if (isObject(resourceFieldRef)) {
    const resource = textAt(resourceFieldRef, 'resource');
    return `${resourceText(container, resource, resourceFieldRef['divisor'])} (${resource})`;
  }
  const key = (ref: JsonObject, kind: string) =>
    `<set to the key '${textAt(ref, 'key')}' ${kind} '${textAt(ref, 'name')}'>` +
    `\tOptional: ${ref['optional'] === true}`;
  if (isObject(secretKeyRef)) return key(secretKeyRef, 'in secret');
  if (isObject(configMapKeyRef)) return key(configMapKeyRef, 'of config map');
  return textAt(variable, 'value').replaceAll('\n', '\n      \t');
}

/** The metadata of a Pod that a variable refers to; empty for other fields, as in kubectl. */
function fieldText(pod: JsonObject | undefined, path: string): string {
  const [, map, key] = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path) ?? [];
  if (map !== undefined && key !== undefined) return textAt(pod, 'metadata', map, key);
  return /^metadata\.(name|namespace|uid)$/.test(path) ? textAt(pod, ...path.split('.')) : '';
}

/** The resource of a container that a variable refers to, in units of the divisor, rounded up. */
function resourceText(
  container: JsonObject,
  resource: string,
  divisor: JsonValue | undefined,
): string {
  const [, list, name] =
    /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.exec(resource) ?? [];
  if (list === undefined || name === undefined) return '';
  const nanoUnit = name === 'cpu' ? 1_000_000n : 1_000_000_000n;
  const unit = amountRoundedUp(divisor, nanoUnit) || amountRoundedUp('1', nanoUnit);
  const amount = amountRoundedUp(objectAt(container, 'resources', list)[name], nanoUnit);
  if (amount === 0n && /^limits\.(cpu|memory)$/.test(resource)) return 'node allocatable';
  return String((amount + unit - 1n) / unit);
}

function devices(container: JsonObject): string[] {
  const list = listAt(container, 'volumeDevices').map(
    (device) => `  ${textAt(device, 'devicePath')} from ${textAt(device, 'name')}`,
  );
  return list.length === 0 ? [] : ['Devices:', ...list.sort()];
}

function mounts(container: JsonObject): string[] {
  const lines = listAt(container, 'volumeMounts')
    .map((mount) => {
      const path = textAt(mount, 'subPath');
      const access = mount['readOnly'] === true ? 'ro' : 'rw';
      const flags = [access, ...(path === '' ? [] : [`path=${JSON.stringify(path)}`])];
      return `  ${textAt(mount, 'mountPath')} from ${textAt(mount, 'name')} (${flags.join(',')})`;
    })
    .sort();
  return [`Mounts:${lines.length === 0 ? '\t<none>' : ''}`, ...lines];
}

/** `key=value:NoSchedule op=Exists for 300s`. */
function tolerationText(toleration: JsonObject): string {
  const [key, value, effect] = ['key', 'value', 'effect'].map((name) => textAt(toleration, name));
  const pair = value === '' ? key : `${key}=${value}`;
  const seconds = toleration['tolerationSeconds'];
  const exists = textAt(toleration, 'operator') === 'Exists';
  const isAll = exists && key === '';
  const operator = exists && value === '' && (key !== '' || effect !== '') ? ' op=Exists' : '';
  return [
    `${pair}${effect === '' ? '' : `:${effect}`}${isAll ? `${operator || 'op=Exists'}` : operator}`,
    ...(seconds === undefined ? [] : [`for ${String(seconds)}s`]),
  ].join(' ');
}
