import type { Dialect } from '@wheelhouse/machinery';

/** Where a group version stands in discovery that others are merged into. */
export interface Priority {
  readonly groupPriorityMinimum: number;
  readonly versionPriority: number;
}

/** Groups by their stems, as upstream ranks them. */
const groups: Readonly<Record<string, number>> = {
  '': 18_000,
  apps: 17_800,
  events: 17_750,
  authentication: 17_700,
  authorization: 17_600,
  autoscaling: 17_500,
  batch: 17_400,
  certificates: 17_300,
  networking: 17_200,
  extensions: 17_150,
  policy: 17_100,
  'rbac.authorization': 17_000,
  storage: 16_800,
  apiextensions: 16_700,
  admissionregistration: 16_700,
  scheduling: 16_600,
  coordination: 16_500,
  node: 16_300,
  discovery: 16_200,
  'flowcontrol.apiserver': 16_100,
  'internal.apiserver': 16_000,
  resource: 15_900,
  storagemigration: 15_800,
};

/** Versions that do not have the rank of their stage, by the group's stem. */
const versions: Readonly<Record<string, number>> = {
  '/v1': 1,
  'admissionregistration/v1beta1': 12,
  'autoscaling/v2': 30,
  'autoscaling/v2beta2': 1,
  'discovery/v1beta1': 12,
  'events/v1beta1': 5,
  'extensions/v1beta1': 1,
  'flowcontrol.apiserver/v1': 21,
  'flowcontrol.apiserver/v1beta3': 18,
  'flowcontrol.apiserver/v1beta2': 15,
  'flowcontrol.apiserver/v1beta1': 12,
  'rbac.authorization/v1beta1': 12,
  'scheduling/v1beta1': 12,
};

/** All custom kinds stand behind. */
export const customPriority: Priority = { groupPriorityMinimum: 1000, versionPriority: 100 };

/** The ranks of built-in group versions; undefined for a group of no rank. */
export function prioritiesOf(
  dialect: Dialect,
): (group: string, version: string) => Priority | undefined {
  const stems = new Map(Object.keys(groups).map((stem) => [dialect.group(stem), stem]));
  return (group, version) => {
    const stem = stems.get(group);
    const groupPriorityMinimum = stem === undefined ? undefined : groups[stem];
    if (groupPriorityMinimum === undefined) return undefined;
    const versionPriority = versions[`${stem}/${version}`] ?? stageRank(version);
    return { groupPriorityMinimum, versionPriority };
  };
}

function stageRank(version: string): number {
  if (version.includes('alpha')) return 1;
  return version.includes('beta') ? 9 : 15;
}
