import {
  type ConfigurationFormat,
  decodeConfiguration,
  listType,
  structType,
  textType,
} from '@wheelhouse/codec';
import {
  appendAll,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  duplicate,
  type FieldError,
  invalid,
  member,
  objectOf,
  repeats,
  textOf,
  textsOf,
} from '@wheelhouse/machinery';
import {
  type Level,
  levelProblem,
  minorOf,
  type Policy,
  type Standard,
  versionProblem,
} from '../pod-security/pod-security-policy.ts';
import { refuse } from './file.ts';

/** Settings of PodSecurity: the policy of namespaces without labels, and the exemptions. */
export interface PodSecuritySettings {
  readonly defaults: Policy;
  readonly exemptions: {
    readonly usernames: ReadonlySet<string>;
    readonly namespaces: ReadonlySet<string>;
    readonly runtimeClasses: ReadonlySet<string>;
  };
}

const modes = ['enforce', 'warn', 'audit'] as const;
const exempted = ['namespaces', 'runtimeClasses', 'usernames'] as const;
const texts = listType(textType);
const configurationType = structType('PodSecurityConfiguration', {
  defaults: structType(
    'PodSecurityDefaults',
    Object.fromEntries(
      modes.flatMap((mode) => [mode, `${mode}-version`]).map((n) => [n, textType]),
    ),
  ),
  exemptions: structType(
    'PodSecurityExemptions',
    Object.fromEntries(exempted.map((name) => [name, texts])),
  ),
});

/** The configuration of PodSecurity: the levels of namespaces without labels, and exemptions. */
export const podSecurityFormat = {
  kind: 'PodSecurityConfiguration',
  group: 'pod-security.admission.config',
  versions: { v1: configurationType, v1beta1: configurationType, v1alpha1: configurationType },
} as const satisfies ConfigurationFormat;

/** Reads the configuration of PodSecurity. Rejects with ConfigurationError. */
export async function readPodSecurity(
  text: string,
  dialect: Dialect,
): Promise<PodSecuritySettings> {
  const { object } = await decodeConfiguration(text, {
    ...podSecurityFormat,
    group: dialect.group(podSecurityFormat.group),
  });
  const defaults = objectOf(member(object, 'defaults'));
  const exemptions = objectOf(member(object, 'exemptions'));
  const defaultText = (name: string, otherwise: string) =>
    textOf(member(defaults, name)) || otherwise;
  const errors: FieldError[] = [];
  const standardOf = (mode: (typeof modes)[number]): Standard => {
    const level = defaultText(mode, 'privileged');
    const version = defaultText(`${mode}-version`, 'latest');
    appendAll(errors, levelProblem(`defaults.${mode}`, level));
    appendAll(errors, versionProblem(`defaults.${mode}-version`, version));
    const minor = minorOf(version);
    return { level: level as Level, minor: minor === 'unreadable' ? undefined : minor };
  };
  const [enforce, warn, audit] = modes.map(standardOf) as [Standard, Standard, Standard];
  const namesOf = (name: (typeof exempted)[number]) => textsOf(member(exemptions, name));
  for (const name of exempted) appendAll(errors, checkExempted(name, namesOf(name)));
  refuse(errors);
  return {
    defaults: { enforce, warn, audit },
    exemptions: {
      namespaces: new Set(namesOf('namespaces')),
      runtimeClasses: new Set(namesOf('runtimeClasses')),
      usernames: new Set(namesOf('usernames')),
    },
  };
}

const problemsOf: Readonly<Record<(typeof exempted)[number], (name: string) => readonly string[]>> =
  {
    namespaces: dnsLabel,
    runtimeClasses: dnsSubdomain,
    usernames: (name) => (name === '' ? ['username must not be empty'] : []),
  };

function checkExempted(name: (typeof exempted)[number], names: readonly string[]): FieldError[] {
  const isRepeated = repeats(names);
  return names.flatMap((exemption, index) => {
    const path = `exemptions.${name}[${index}]`;
    const problems = problemsOf[name](exemption);
    if (problems.length > 0) return [invalid(path, exemption, problems.join(', '))];
    return isRepeated[index] === true ? [duplicate(path, exemption)] : [];
  });
}
