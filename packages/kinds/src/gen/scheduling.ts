/** Facts about the types of `scheduling`; made by scripts/facts/generate.mjs, do not edit. */
export const schedulingFacts = `
@v1
#PriorityClass k c i=1.14
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
value 2 int32
globalDefault 3 bool e o
description 4 string e o
preemptionPolicy 5 *core.v1.PreemptionPolicy e o
#PriorityClassList k i=1.14
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PriorityClass
@v1alpha1
#PriorityClass k c
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
value 2 int32
globalDefault 3 bool e o
description 4 string e o
preemptionPolicy 5 *core.v1.PreemptionPolicy e o
#PriorityClassList k
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PriorityClass
@v1beta1
#PriorityClass k c i=1.11 d=1.14 x=1.22 r=scheduling,v1,PriorityClass
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
value 2 int32
globalDefault 3 bool e o
description 4 string e o
preemptionPolicy 5 *core.v1.PreemptionPolicy e o
#PriorityClassList k i=1.11 d=1.14 x=1.22 r=scheduling,v1,PriorityClassList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []PriorityClass
`;
