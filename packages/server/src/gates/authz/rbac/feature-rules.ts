import type { GateName, PolicyRule } from '@wheelhouse/kinds';
import type { RuleWords } from './default-rules.ts';

type Rules = Readonly<Record<string, readonly PolicyRule[]>>;

/** A default role, or more rules of one, that is there while features are on (AUTHZ-7). */
interface FeatureRules {
  readonly gates: readonly GateName[];
  readonly role: string;
  readonly rules: readonly PolicyRule[];
}

/** The rules that features add to default roles, by the role's name. */
export function featureRules(words: RuleWords, role: string): readonly PolicyRule[] {
  return enabled(words, componentRules(words))
    .filter((one) => one.role === role)
    .flatMap(({ rules }) => rules);
}

/** The roles of controllers that features bring, by the controller's name. */
export function featureControllers(words: RuleWords): Rules {
  const found = enabled(words, [...ofAllocation(words), ...ofMigration(words)]);
  return Object.fromEntries(found.map(({ role, rules }) => [role, rules]));
}

function enabled({ features }: RuleWords, all: readonly FeatureRules[]): readonly FeatureRules[] {
  return all.filter(({ gates }) => gates.every((gate) => features.enabled(gate)));
}

function componentRules({ rule, urls }: RuleWords): readonly FeatureRules[] {
  return [
    {
      gates: ['ComponentFlagz'],
      role: 'system:monitoring',
      rules: [urls('/flagz')],
    },
    {
      gates: ['ComponentStatusz'],
      role: 'system:monitoring',
      rules: [urls('/statusz')],
    },
    {
      gates: ['MultiCIDRServiceAllocator'],
      role: 'system:node-proxier',
      rules: [rule('list watch', 'networking', 'servicecidrs')],
    },
    {
      gates: ['KubeletFineGrainedAuthz'],
      role: 'system:kubelet-api-admin',
      rules: [rule('*', '', 'nodes/configz nodes/healthz nodes/pods')],
    },
    {
      gates: ['DynamicResourceAllocation'],
      role: 'system:node',
      rules: [
        rule('get', 'resource', 'resourceclaims'),
        rule('deletecollection', 'resource', 'resourceslices'),
      ],
    },
    {
      gates: ['ClusterTrustBundle'],
      role: 'system:node',
      rules: [rule('get list watch', 'certificates', 'clustertrustbundles')],
    },
  ];
}

function ofAllocation({ rule, events }: RuleWords): readonly FeatureRules[] {
  return [
    {
      gates: ['MultiCIDRServiceAllocator'],
      role: 'service-cidrs-controller',
      rules: [
        rule('get list patch update watch', 'networking', 'servicecidrs'),
        rule('patch update', 'networking', 'servicecidrs/finalizers'),
        rule('patch update', 'networking', 'servicecidrs/status'),
        rule('get list watch', 'networking', 'ipaddresses'),
        events(),
      ],
    },
    {
      gates: ['DynamicResourceAllocation'],
      role: 'resource-claim-controller',
      rules: [
        rule('get list watch', '', 'pods'),
        rule('update', '', 'pods/finalizers'),
        rule('create delete get list watch', 'resource', 'resourceclaims'),
        rule('patch update', 'resource', 'resourceclaims resourceclaims/status'),
        rule('patch update', '', 'pods/status'),
        events(),
      ],
    },
    {
      gates: ['VolumeAttributesClass'],
      role: 'volumeattributesclass-protection-controller',
      rules: [
        rule('get list watch', '', 'persistentvolumeclaims'),
        rule('get list watch', '', 'persistentvolumes'),
        rule('get list update watch', 'storage', 'volumeattributesclasses'),
        events(),
      ],
    },
    {
      gates: ['SELinuxChangePolicy'],
      role: 'selinux-warning-controller',
      rules: [
        events(),
        rule('get list watch', '', 'persistentvolumes'),
        rule('get list watch', '', 'persistentvolumeclaims'),
        rule('get list watch', '', 'pods'),
        rule('get list watch', 'storage', 'csidrivers'),
      ],
    },
  ];
}

function ofMigration({ rule, events, signer }: RuleWords): readonly FeatureRules[] {
  const publisher = 'kube-apiserver-serving';
  return [
    {
      gates: ['ClusterTrustBundle'],
      role: `${publisher}-clustertrustbundle-publisher`,
      rules: [
        rule('attest', 'certificates', 'signers', signer(publisher)),
        rule('create delete list update watch', 'certificates', 'clustertrustbundles'),
        events(),
      ],
    },
    {
      gates: ['StorageVersionAPI', 'APIServerIdentity'],
      role: 'storage-version-garbage-collector',
      rules: [
        rule('get list watch', 'coordination', 'leases'),
        rule('delete get list patch update watch', 'internal.apiserver', 'storageversions'),
        rule('get patch update', 'internal.apiserver', 'storageversions/status'),
      ],
    },
    {
      gates: ['StorageVersionMigrator'],
      role: 'storage-version-migrator-controller',
      rules: [
        rule('create list patch watch', '*', '*'),
        rule('update', 'storagemigration', 'storageversionmigrations/status'),
      ],
    },
  ];
}
