//! Values of options as text.

use std::path::PathBuf;

/// A type an option can have.
pub trait OptionValue: Sized {
    /// Reads the value from text.
    fn parse(text: &str) -> std::result::Result<Self, String>;
    /// Writes it as `parse` reads it.
    fn show(&self) -> String;
}

impl OptionValue for u64 {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        parse_size(text)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// A percentage, with fractions as InnoDB takes them.
impl OptionValue for f32 {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let plain = |c: char| c.is_ascii_digit() || c == '.';
        let number = text.trim().parse().ok().filter(|_| text.trim().chars().all(plain));
        number.ok_or_else(|| format!("{text:?} is not a number such as 75 or 75.5"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for bool {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "on" | "true" | "yes" => Ok(true),
            "0" | "off" | "false" | "no" => Ok(false),
            _ => Err(format!("{text:?} is neither on nor off")),
        }
    }

    fn show(&self) -> String {
        if *self { "on" } else { "off" }.to_string()
    }
}

/// Reads a count or a size: `128M`, `16KiB`, `1GiB`, `4096`. Suffixes are powers of 1024.
pub fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let shift = match suffix.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(format!("{text:?} is not a number or a size such as 64M or 1GiB")),
    };
    if number.is_empty() {
        return Err(format!("{text:?} is not a number or a size such as 64M or 1GiB"));
    }
    let number: u64 = number.parse().map_err(|_| format!("{text:?} is too large"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text:?} is too large"))
}

impl OptionValue for Option<PathBuf> {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        Ok((!text.is_empty()).then(|| PathBuf::from(text)))
    }

    fn show(&self) -> String {
        self.as_ref().map(|p| p.display().to_string()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_range_is_a_number() {
        for text in ["99999999999999999999", "99999999999999999999K", "99999999T"] {
            assert!(parse_size(text).unwrap_err().ends_with("is too large"), "{text}");
        }
        for text in ["", "K", "-1", "1.5G", "12Q"] {
            assert!(parse_size(text).unwrap_err().contains("is not a number"), "{text}");
        }
    }
}
