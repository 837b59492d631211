/** Facts about the types of `node`; made by scripts/facts/generate.mjs, do not edit. */
export const nodeFacts = `
@v1
#RuntimeClass k c i=1.20
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
handler 2 string
overhead 3 *Overhead e o
scheduling 4 *Scheduling e o
#Overhead
podFixed 1 core.v1.ResourceList e o
#Scheduling
nodeSelector 1 {}string e o m=atomic
tolerations 2 []core.v1.Toleration e o l=atomic
#RuntimeClassList k i=1.20
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []RuntimeClass
@v1alpha1
#RuntimeClass k c
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 RuntimeClassSpec
#RuntimeClassSpec
runtimeHandler 1 string
overhead 2 *Overhead e o
scheduling 3 *Scheduling e o
#Overhead
podFixed 1 core.v1.ResourceList e o
#Scheduling
nodeSelector 1 {}string e o m=atomic
tolerations 2 []core.v1.Toleration e o l=atomic
#RuntimeClassList k
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []RuntimeClass
@v1beta1
#RuntimeClass k c i=1.13 d=1.22
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
handler 2 string
overhead 3 *Overhead e o
scheduling 4 *Scheduling e o
#Overhead
podFixed 1 core.v1.ResourceList e o
#Scheduling
nodeSelector 1 {}string e o m=atomic
tolerations 2 []core.v1.Toleration e o l=atomic
#RuntimeClassList k i=1.13 d=1.22
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []RuntimeClass
`;
