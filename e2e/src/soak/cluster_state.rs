//! The objects of a soak test and their changes. The set of possible objects is small, so all results can be predicted.
//!
//! Each policy has a slot. The slot determines the matched resources, the params and the failurePolicy. These can
//! change: the existence and the expression of a policy, its binding, its probe, its CRDs and its params.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use parity::random::Random;

/// The resources that a policy matches, and its params.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// The policy matches Deployments, which are always served.
    Deployments,
    /// The policy matches widgets, which a CRD defines.
    Widgets,
    /// The policy matches all resources in the API group of widgets.
    Wildcard,
    /// The policy matches Deployments. Its params are config maps.
    ConfigMaps,
    /// The policy matches Deployments. Its params are limits, which a CRD defines.
    Limits,
}

/// The constant properties of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// The number of the slot.
    pub n: usize,
    /// The matched resources and the params.
    pub shape: Shape,
    /// True if the failurePolicy is Fail.
    pub fails_closed: bool,
    /// True if the policy is a MutatingAdmissionPolicy.
    pub is_mutating: bool,
}

impl Slot {
    /// All slots.
    pub const ALL: [Self; 15] = {
        const fn slot(n: usize, shape: Shape) -> Slot {
            Slot {
                n,
                shape,
                fails_closed: n.is_multiple_of(2),
                is_mutating: false,
            }
        }
        const fn mutating(n: usize, shape: Shape) -> Slot {
            Slot {
                is_mutating: true,
                ..slot(n, shape)
            }
        }
        [
            slot(0, Shape::Deployments),
            slot(1, Shape::Deployments),
            slot(2, Shape::Widgets),
            slot(3, Shape::Widgets),
            slot(4, Shape::Wildcard),
            slot(5, Shape::Wildcard),
            slot(6, Shape::ConfigMaps),
            slot(7, Shape::ConfigMaps),
            slot(8, Shape::Limits),
            slot(9, Shape::Limits),
            // A mutating and a validating policy may have the same name.
            mutating(0, Shape::Deployments),
            mutating(2, Shape::Widgets),
            mutating(5, Shape::Wildcard),
            mutating(7, Shape::ConfigMaps),
            mutating(8, Shape::Limits),
        ]
    };

    /// Returns the slots of a cluster. Mutating policies are included if `watches_mutating` is true.
    pub fn all(watches_mutating: bool) -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(move |slot| watches_mutating || !slot.is_mutating)
    }

    /// Returns the name of the policy, which is also the name of its binding and its probe.
    #[must_use]
    pub fn name(self) -> String {
        format!("soak-{}", self.n)
    }

    /// Returns true if the policy has a paramKind.
    #[must_use]
    pub fn has_params(self) -> bool {
        matches!(self.shape, Shape::ConfigMaps | Shape::Limits)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_mutating { "mutating " } else { "" };
        write!(f, "{kind}{}", self.name())
    }
}

/// The content of a policy. A change may replace it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edition {
    /// True if the expression misspells a field name.
    pub is_misspelled: bool,
    /// A number in the expression. A change of the number increments the generation.
    pub number: u64,
}

/// The schema of a CRD. Variants differ in the type of the field that expressions compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The type is `integer`, as the expressions expect.
    Integer,
    /// The type is `string`.
    String,
}

/// The paramRef of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// No reference.
    None,
    /// By name: the param with this number.
    Named(usize, NotFound),
    /// By a selector that matches all params.
    Selected(NotFound),
}

/// The parameterNotFoundAction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// Allow.
    Allow,
    /// Deny.
    Deny,
}

/// The expected decision of a probe. The probe's Deployment has too many replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The deployment is allowed.
    Allow,
    /// The deployment is denied.
    Deny,
}

/// The maximum number of params per kind, and of namespaces.
pub const N_PARAMS: usize = 2;

/// The objects in the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterState {
    /// The policies, by slot.
    pub policies: BTreeMap<Slot, Edition>,
    /// The bindings, by the slot of their policy.
    pub bindings: BTreeMap<Slot, Reference>,
    /// The probes, by the slot of their policy.
    pub probes: BTreeMap<Slot, Expectation>,
    /// The CRD of widgets.
    pub widgets: Option<Variant>,
    /// The CRD of limits.
    pub limits: Option<Variant>,
    /// The numbers of the existing config map params.
    pub config_map_params: BTreeSet<usize>,
    /// The numbers of the existing limit params.
    pub limit_params: BTreeSet<usize>,
    /// The namespaces by number, each with the value of its label. No object refers to these namespaces.
    pub namespaces: BTreeMap<usize, u64>,
}

/// A change of one object. `None` deletes the object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// A policy.
    Policy(Slot, Option<Edition>),
    /// A binding.
    Binding(Slot, Option<Reference>),
    /// A probe.
    Probe(Slot, Option<Expectation>),
    /// The CRD of widgets.
    Widgets(Option<Variant>),
    /// The CRD of limits.
    Limits(Option<Variant>),
    /// A config map param and its content.
    ConfigMapParam(usize, Option<u64>),
    /// A limit param and its content.
    LimitParam(usize, Option<u64>),
    /// A namespace and its label. Namespaces are never deleted, because no controller finalizes them here.
    Namespace(usize, u64),
}

impl ClusterState {
    /// Returns a random change. The change is possible in this state.
    pub fn change(&self, has_probes: bool, watches_mutating: bool, random: &mut Random) -> Change {
        let slots: Vec<Slot> = Slot::all(watches_mutating).collect();
        let slot = *random.choose(&slots).unwrap_or(&Slot::ALL[0]);
        let param = usize::try_from(random.below(N_PARAMS as u64)).unwrap_or_default();
        let exists = random.permille(750);
        let number = random.below(3);
        match random.below(100) {
            0..35 => {
                let edition = Edition {
                    is_misspelled: random.permille(300),
                    number,
                };
                Change::Policy(slot, exists.then_some(edition))
            }
            35..55 => {
                let not_found = if random.permille(500) {
                    NotFound::Deny
                } else {
                    NotFound::Allow
                };
                let reference = match random.below(3) {
                    0 => Reference::Named(param, not_found),
                    1 => Reference::Selected(not_found),
                    _ => Reference::None,
                };
                let reference = if slot.has_params() {
                    reference
                } else {
                    Reference::None
                };
                Change::Binding(slot, exists.then_some(reference))
            }
            55..70 if has_probes && !slot.is_mutating => {
                let expectation = if random.permille(700) {
                    Expectation::Deny
                } else {
                    Expectation::Allow
                };
                Change::Probe(slot, exists.then_some(expectation))
            }
            70..85 => {
                let variant = if random.permille(700) {
                    Variant::Integer
                } else {
                    Variant::String
                };
                if random.permille(500) {
                    Change::Widgets(exists.then_some(variant))
                } else {
                    Change::Limits(exists.then_some(variant))
                }
            }
            85..95 if random.permille(500) || self.limits.is_none() => {
                Change::ConfigMapParam(param, exists.then_some(number))
            }
            85..95 => Change::LimitParam(param, exists.then_some(number)),
            _ => Change::Namespace(param, number),
        }
    }

    /// Returns a second change of the same object, if any. This change follows immediately, to provoke a race.
    pub fn second(&self, change: Change, random: &mut Random) -> Option<Change> {
        match change {
            Change::Policy(slot, Some(_)) if random.permille(500) => {
                let edition = Edition {
                    is_misspelled: random.permille(300),
                    number: random.below(3),
                };
                let exists = random.permille(700);
                Some(Change::Policy(slot, exists.then_some(edition)))
            }
            _ => None,
        }
    }

    /// Applies a change.
    pub fn apply(&mut self, change: Change) {
        fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
            match value {
                Some(value) => drop(map.insert(key, value)),
                None => drop(map.remove(&key)),
            }
        }
        match change {
            Change::Policy(slot, edition) => set(&mut self.policies, slot, edition),
            Change::Binding(slot, reference) => set(&mut self.bindings, slot, reference),
            Change::Probe(slot, expectation) => set(&mut self.probes, slot, expectation),
            Change::Widgets(variant) => self.widgets = variant,
            Change::Limits(variant) => {
                self.limits = variant;
                if variant.is_none() {
                    // Custom resources are deleted with their CRD.
                    self.limit_params.clear();
                }
            }
            Change::ConfigMapParam(n, Some(_)) => drop(self.config_map_params.insert(n)),
            Change::ConfigMapParam(n, None) => drop(self.config_map_params.remove(&n)),
            Change::LimitParam(n, Some(_)) => drop(self.limit_params.insert(n)),
            Change::LimitParam(n, None) => drop(self.limit_params.remove(&n)),
            Change::Namespace(n, label) => drop(self.namespaces.insert(n, label)),
        }
    }

    /// Returns the maximum number of affected statuses, including probe statuses.
    #[must_use]
    pub fn n_affected(&self, change: Change) -> u64 {
        let of_slot = |slot: &Slot| {
            u64::from(self.policies.contains_key(slot)) + u64::from(self.probes.contains_key(slot))
        };
        let of_shapes = |shapes: &[Shape]| {
            let slots = Slot::ALL.iter();
            let concerned = slots.filter(|slot| shapes.contains(&slot.shape));
            concerned.map(of_slot).sum()
        };
        match change {
            Change::Policy(slot, _) | Change::Binding(slot, _) => of_slot(&slot),
            // A new probe is not in `probes` yet, but its status and that of its policy are affected.
            Change::Probe(slot, _) => of_slot(&slot).max(2),
            Change::Widgets(_) => of_shapes(&[Shape::Widgets, Shape::Wildcard]),
            Change::Limits(_) | Change::LimitParam(..) => of_shapes(&[Shape::Limits]),
            Change::ConfigMapParam(..) => of_shapes(&[Shape::ConfigMaps]),
            Change::Namespace(..) => 0,
        }
    }
}
