/** Facts about the types of `rbac`; made by scripts/facts/generate.mjs, do not edit. */
export const rbacFacts = `
@v1
#PolicyRule
verbs 1 []string l=atomic
apiGroups 2 []string e o l=atomic
resources 3 []string e o l=atomic
resourceNames 4 []string e o l=atomic
nonResourceURLs 5 []string e o l=atomic
#Subject s=atomic
kind 1 string
apiGroup 2 string e o
name 3 string
namespace 4 string e o
#RoleRef s=atomic
apiGroup 1 string
kind 2 string
name 3 string
#Role k n i=1.8
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
rules 2 []PolicyRule o l=atomic
#RoleBinding k n i=1.8
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
subjects 2 []Subject e o l=atomic
roleRef 3 RoleRef
#RoleBindingList k i=1.8
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []RoleBinding
#RoleList k i=1.8
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Role
#ClusterRole k c i=1.8
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
rules 2 []PolicyRule o l=atomic
aggregationRule 3 *AggregationRule e o
#AggregationRule
clusterRoleSelectors 1 []meta.v1.LabelSelector e o l=atomic
#ClusterRoleBinding k c i=1.8
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
subjects 2 []Subject e o l=atomic
roleRef 3 RoleRef
#ClusterRoleBindingList k i=1.8
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ClusterRoleBinding
#ClusterRoleList k i=1.8
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ClusterRole
@v1alpha1
#PolicyRule
verbs 1 []string l=atomic
apiGroups 3 []string e o l=atomic
resources 4 []string e o l=atomic
resourceNames 5 []string e o l=atomic
nonResourceURLs 6 []string e o l=atomic
#Subject
kind 1 string
apiVersion 2 string e o
name 3 string
namespace 4 string e o
#RoleRef
apiGroup 1 string
kind 2 string
name 3 string
#Role k n
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
rules 2 []PolicyRule o l=atomic
#RoleBinding k n
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
subjects 2 []Subject e o l=atomic
roleRef 3 RoleRef
#RoleBindingList k
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []RoleBinding
#RoleList k
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Role
#ClusterRole k c
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
rules 2 []PolicyRule o l=atomic
aggregationRule 3 *AggregationRule e o
#AggregationRule
clusterRoleSelectors 1 []meta.v1.LabelSelector e o l=atomic
#ClusterRoleBinding k c
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
subjects 2 []Subject e o l=atomic
roleRef 3 RoleRef
#ClusterRoleBindingList k
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ClusterRoleBinding
#ClusterRoleList k
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ClusterRole
@v1beta1
#PolicyRule
verbs 1 []string l=atomic
apiGroups 2 []string e o l=atomic
resources 3 []string e o l=atomic
resourceNames 4 []string e o l=atomic
nonResourceURLs 5 []string e o l=atomic
#Subject
kind 1 string
apiGroup 2 string e o
name 3 string
namespace 4 string e o
#RoleRef
apiGroup 1 string
kind 2 string
name 3 string
#Role k n i=1.6 d=1.17 x=1.22 r=rbac.authorization,v1,Role
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
rules 2 []PolicyRule o l=atomic
#RoleBinding k n i=1.6 d=1.17 x=1.22 r=rbac.authorization,v1,RoleBinding
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
subjects 2 []Subject e o l=atomic
roleRef 3 RoleRef
#RoleBindingList k i=1.6 d=1.17 x=1.22 r=rbac.authorization,v1,RoleBindingList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []RoleBinding
#RoleList k i=1.6 d=1.17 x=1.22 r=rbac.authorization,v1,RoleList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []Role
#ClusterRole k c i=1.6 d=1.17 x=1.22 r=rbac.authorization,v1,ClusterRole
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
rules 2 []PolicyRule o l=atomic
aggregationRule 3 *AggregationRule e o
#AggregationRule
clusterRoleSelectors 1 []meta.v1.LabelSelector e o l=atomic
#ClusterRoleBinding k c i=1.6 d=1.17 x=1.22 r=rbac.authorization,v1,ClusterRoleBinding
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
subjects 2 []Subject e o l=atomic
roleRef 3 RoleRef
#ClusterRoleBindingList k i=1.6 d=1.17 x=1.22 r=rbac.authorization,v1,ClusterRoleBindingList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ClusterRoleBinding
#ClusterRoleList k i=1.6 d=1.17 x=1.22 r=rbac.authorization,v1,ClusterRoleList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []ClusterRole
`;
