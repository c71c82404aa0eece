// SPDX-License-Identifier: GPL-2.0-or-later
//! The macro that expands the list of probes in the crate's root. Each line becomes a module, a variant of `Probe`, and
//! an entry of `PROBES`. rustfmt does not see modules that a macro declares, so `make lint` gives it their files.

macro_rules! probes {
    ($($module:ident: $kind:ident,)+) => {
        $(mod $module;)+

        /// The definitions of all probes, in the order in which an experiment measures them.
        pub const PROBES: [&Definition; [$(stringify!($module)),+].len()] =
            [$(&$module::DEFINITION),+];

        /// A probe's part of a plan. In files a variant has its name in small letters.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        pub enum Probe {
            $(#[doc = concat!("Of module `", stringify!($module), "`.")] $kind($module::$kind),)+
        }

        impl Probe {
            /// The probe's name in files.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Probe::$kind(_) => $module::DEFINITION.name,)+
                }
            }
        }

        impl std::ops::Deref for Probe {
            type Target = dyn Measure;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Probe::$kind(probe) => probe,)+
                }
            }
        }
    };
}
