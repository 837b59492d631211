/** The types of an APIService that are the same in both versions. */
const apiServiceTypes = `#ServiceReference
namespace 1 string e
name 2 string e
port 3 *int32 e o
#APIServiceSpec
service 1 *ServiceReference e o
group 2 string e
version 3 string e
insecureSkipTLSVerify 4 bool e
caBundle 5 bytes e o l=atomic
groupPriorityMinimum 7 int32
versionPriority 8 int32`;

/** The types of a PodSecurityPolicy, which two groups served. */
const podSecurityPolicyTypes = `#PodSecurityPolicySpec
privileged 1 bool e o
defaultAddCapabilities 2 []string e o
requiredDropCapabilities 3 []string e o
allowedCapabilities 4 []string e o
volumes 5 []string e o
hostNetwork 6 bool e o
hostPorts 7 []HostPortRange e o
hostPID 8 bool e o
hostIPC 9 bool e o
seLinux 10 SELinuxStrategyOptions
runAsUser 11 RunAsUserStrategyOptions
runAsGroup 22 *RunAsGroupStrategyOptions e o
supplementalGroups 12 SupplementalGroupsStrategyOptions
fsGroup 13 FSGroupStrategyOptions
readOnlyRootFilesystem 14 bool e o
defaultAllowPrivilegeEscalation 15 *bool e o
allowPrivilegeEscalation 16 *bool e o
allowedHostPaths 17 []AllowedHostPath e o
allowedFlexVolumes 18 []AllowedFlexVolume e o
allowedCSIDrivers 23 []AllowedCSIDriver e o
allowedUnsafeSysctls 19 []string e o
forbiddenSysctls 20 []string e o
allowedProcMountTypes 21 []string e o
runtimeClass 24 *RuntimeClassStrategyOptions e o
#AllowedHostPath
pathPrefix 1 string e
readOnly 2 bool e o
#AllowedFlexVolume
driver 1 string
#AllowedCSIDriver
name 1 string
#HostPortRange
min 1 int32
max 2 int32
#SELinuxStrategyOptions
rule 1 string
seLinuxOptions 2 *core.v1.SELinuxOptions e o
#RunAsUserStrategyOptions
rule 1 string
ranges 2 []IDRange e o
#RunAsGroupStrategyOptions
rule 1 string
ranges 2 []IDRange e o
#IDRange
min 1 int64
max 2 int64
#FSGroupStrategyOptions
rule 1 string e o
ranges 2 []IDRange e o
#SupplementalGroupsStrategyOptions
rule 1 string e o
ranges 2 []IDRange e o
#RuntimeClassStrategyOptions
allowedRuntimeClassNames 1 []string
defaultRuntimeClassName 2 *string e o`;

/** The flags of a kind and of its list, in the format of `gen/`. */
interface KindFlags {
  readonly kind: string;
  readonly list: string;
}

/** The types of one version of apiregistration. */
const apiServiceFacts = (version: string, flags: KindFlags) =>
  `
@${version}
#APIServiceList ${flags.list}
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e
items 2 []APIService
${apiServiceTypes}
#APIServiceCondition
type 1 string t=${version}.APIServiceConditionType
status 2 string t=${version}.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#APIServiceStatus
conditions 1 []APIServiceCondition e o l=map k=type p=merge y=type
#APIService ${flags.kind}
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e
spec 2 APIServiceSpec e
status 3 APIServiceStatus e
`.trimEnd();

/** The types of `v1beta1` of a group that served PodSecurityPolicies. */
const podSecurityPolicyFacts = (flags: KindFlags) => `
@v1beta1
#PodSecurityPolicy ${flags.kind}
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 PodSecurityPolicySpec e o
${podSecurityPolicyTypes}
#PodSecurityPolicyList ${flags.list}
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PodSecurityPolicy
`;

/**
 * Facts about types that are not generated, in the format of `gen/`: groups in packages of their
 * own, and types that the release has removed.
 */
export const factsByHand: Readonly<Record<string, string>> = {
  apiregistration: `${apiServiceFacts('v1', { kind: 'k c i=1.10', list: 'k' })}${apiServiceFacts(
    'v1beta1',
    {
      kind: 'k c i=1.7 d=1.19 r=apiregistration,v1,APIService',
      list: 'k i=1.7 d=1.19 r=apiregistration,v1,APIServiceList',
    },
  )}
`,
  policy: podSecurityPolicyFacts({
    kind: 'k c i=1.10 d=1.21 x=1.25',
    list: 'k i=1.10 d=1.21 x=1.25',
  }),
  extensions: podSecurityPolicyFacts({
    kind: 'k c i=1.2 d=1.11 x=1.16 r=policy,v1beta1,PodSecurityPolicy',
    list: 'k i=1.2 d=1.11 x=1.16 r=policy,v1beta1,PodSecurityPolicyList',
  }),
};

/** Group names without the vendor suffix, for directories that exist only in this file. */
export const stemsByHand: Readonly<Record<string, string>> = {
  apiextensions: 'apiextensions',
  apiregistration: 'apiregistration',
};
